#ifndef EDGESHARE_HINT_H
#define EDGESHARE_HINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/state.h"

/* What the manager should know of this client, on the hint page. */
void es_hint_write(uint64_t now_ns) ES_LOCKED(es_state_lock);

/* Is anything queued of which nobody knows how long it takes? Beside siblings nothing is foretold anyway. */
bool es_hint_unseen(void) ES_LOCKED(es_state_lock);

/* How much later than estimated a drain usually ends: 0 or less. */
extern int64_t es_hint_error_ns ES_UNDER(es_state_lock) __attribute__((visibility("hidden")));

/* In a forked child. */
void es_hint_reset(void);

#endif
