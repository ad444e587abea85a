#ifndef EDGESHARE_ROOM_H
#define EDGESHARE_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/state.h"
#include "core/times/costs.h"
#include "threads/slots.h"

/* The queue's cap, and what of it a submission finds taken. */

/* How much may be queued, and when that is refilled. */
struct es_room {
    uint64_t cap_ns;   /* most */
    uint64_t level_ns; /* a submission waits while more is queued … */
    uint64_t floor_ns; /* … than this, or than that level, which sinks with time while the slice is sure */
    bool yields; /* … and while anything is: a device that divides time between processes goes to another where one has none */
};

/* What is queued beyond the slice is what keeps the next client waiting. As long as the slice is sure to last, its rest may
 * be queued too, but for a quarter: of what runs only the estimate is known. So a thread is woken some four times a slice,
 * and comes in time even when it wakes late. */
struct es_room es_room_now(uint32_t word, uint64_t cost_ns, uint64_t now_ns) ES_LOCKED(es_state_lock);

/* For how long so much is too much. The level sinks at half of the cap's pace, three quarters, where it is half the cap. */
uint64_t es_room_wait_ns(const struct es_room *room, uint64_t queued_ns) ES_LOCKED(es_state_lock);

/* What a submission to this stream has to wait for. Where streams run beside each other, that is what its own
 * has queued; but however many there are, what they have queued beside the longest is no more than the cap, and the level. */
uint64_t es_room_queued_ns(const struct es_slot *slot, int index, const struct es_room *room, uint64_t now_ns)
    ES_LOCKED(es_state_lock);

/* How many launches a stream may take that is not the program's only one, while little is known of their
 * function. What an estimate that is far too low lets through, because something ran beside what was timed, is seen when it has
 * ended: so no more of it is there at a time than fits if each took all of the time that was seen. */
uint64_t es_room_launches(const struct es_room *room, const struct es_cost *cost, int index) ES_LOCKED(es_state_lock);

#endif
