#ifndef EDGESHARE_STATE_H
#define EDGESHARE_STATE_H

#include <stdint.h>

#include "core/tools/lock.h"

/* What all floors of the hook share: one lock, and a count of what has happened that others wait for. */

/* The lock of the session, of the threads' batches, of what is queued and of the grant: these change together, as a launch
 * that is let go belongs to all of them. It is held for a few dozen instructions or one non-blocking send, never across a
 * call of the driver. Memory has locks of its own (memory/). */
extern struct es_lock es_state_lock __attribute__((visibility("hidden")));

/* Counts batches that ended, and what else a thread may wait for: a private futex, read before the look that decides to
 * sleep. */
extern uint32_t es_progress __attribute__((visibility("hidden")));

static inline uint32_t es_progress_seen(void) { return __atomic_load_n(&es_progress, __ATOMIC_ACQUIRE); }

/* Sleeps while nothing has happened since that was seen, at most so long. */
static inline void es_progress_wait(uint32_t seen, uint64_t timeout_ns) { es_sleep_on(&es_progress, seen, timeout_ns); }

static inline void es_progress_count(void) { __atomic_fetch_add(&es_progress, 1, __ATOMIC_RELEASE); }

static inline void es_progress_wake(void) { es_wake_all(&es_progress); }

/* In a forked child: the lock may be one that a thread of the parent held. */
void es_state_reset(void);

#endif
