#ifndef EDGESHARE_CORE_SIBLINGS_H
#define EDGESHARE_CORE_SIBLINGS_H

#include "wire_checks.h"

/* The processes of one allocation may launch at the same time. What passes between two markers of one is its own time only
 * where no other used the device meanwhile: each says in its place of their common page when it does. A reader that sees the
 * same sum twice, and nobody at work, knows that nobody was in between. */

/* The client in this place is about to submit something, or has drained. Saying so again changes nothing. */
void es_siblings_use(struct es_siblings_page *page, uint32_t place, int uses);

/* What all clients but the one in this place have done so far; odd while one of them uses the device. A client that has no
 * place is taken to use it all the time. */
uint64_t es_siblings_seen(const struct es_siblings_page *page, uint32_t place);

#endif
