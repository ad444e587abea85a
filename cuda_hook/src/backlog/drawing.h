#ifndef EDGESHARE_DRAWING_H
#define EDGESHARE_DRAWING_H

#include <stdint.h>

#include "backlog/room.h"
#include "base/state.h"

/* How much a thread may draw of what is free in the queue, and how long it has to wait first. */

enum { ES_OVERDUE_NS = 10 * 1000 * 1000 }; /* a head marker so late: its estimate is worth nothing, launches pass singly */

/* What a launch counts for before it has run. */
uint64_t es_expected_ns(const struct es_cost *cost) ES_LOCKED(es_state_lock);

/* Launches pass singly. For how long one of this cost has to wait before it is its turn; 0: it is. */
uint64_t es_draw_singly_ns(uint64_t cost_ns, uint64_t now_ns) ES_LOCKED(es_state_lock);

/* How much the thread may draw for a submission of this cost, or for how long it has to wait first (then *wait_ns is not 0).
 * Only what is queued makes it wait; what others may still submit makes its part smaller. */
uint64_t es_draw(const struct es_room *room, uint64_t cost_ns, const struct es_cost *cost, uint64_t queued_ns, uint32_t word,
                 uint64_t now_ns, uint64_t *wait_ns) ES_LOCKED(es_state_lock);

#endif
