#ifndef EDGESHARE_PAGES_H
#define EDGESHARE_PAGES_H

#include <stdbool.h>

#include "link/channel.h"
#include "wire_checks.h"

/* Where the manager's pages are mapped: always at the same place, so that they can be read at any time once there
 * were any. */

/* Puts the pages of a fresh session (gate, hint, siblings) in the place of the last one's. False where the first two
 * cannot be used. */
bool es_pages_replace(const int fds[ES_FDS]);

/* NULL before the first session. */
struct es_gate_page *es_pages_gate(void);
struct es_hint_page *es_pages_hint(void);

/* NULL where the last session has none: an older manager's. */
struct es_siblings_page *es_pages_siblings(void);

#endif
