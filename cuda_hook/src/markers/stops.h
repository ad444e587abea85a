#ifndef EDGESHARE_STOPS_H
#define EDGESHARE_STOPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/state.h"
#include "threads/slots.h"

/* A stream stands still for the few calls that submit a launch and the markers before and behind it, at a function of the
 * host's that waits for them. The device then runs the three without a gap, and the time between the markers is the launch's
 * own, also where that is shorter than such a call. One stream of the process at a time. The function waits for a
 * millisecond at most, whatever becomes of those who are to let it go on. */

/* Whether any may be stopped just now. */
bool es_stop_can(void) ES_LOCKED(es_state_lock);

/* Stops the stream for this thread's next launch, where that can be done. Takes es_state_lock. */
bool es_stop_begin(const struct es_slot *slot, int stream);

/* What other threads have submitted, when none of them is within the driver any more: where all others are excluded, none begins
 * anew. UINT64_MAX: one stays. Takes es_state_lock. */
uint64_t es_stop_others_ns(const struct es_slot *slot);

/* Whether it still stands still for the thread, so that its launch has not begun. */
bool es_stop_holds(const struct es_slot *slot) ES_LOCKED(es_state_lock);

/* Lets the stream go on that was stopped for the thread, if one was. Takes es_state_lock. */
void es_stop_end(const struct es_slot *slot);

/* In a forked child: the parent's threads are not here. */
void es_stop_reset(void);

#endif
