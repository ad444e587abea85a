#ifndef EDGESHARE_SUBMITTED_H
#define EDGESHARE_SUBMITTED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/state.h"
#include "threads/slots.h"

/* What the threads have submitted, and what they still may, in estimated GPU time. */

/* In the open batch of one thread. */
uint64_t es_submitted_in(const struct es_slot *slot) ES_LOCKED(es_state_lock);

/* In all batches since the beginning (es_timeline). */
uint64_t es_submitted_ns(void) ES_LOCKED(es_state_lock);

/* Of that, by all threads but this one; UINT64_MAX: one of them is about to submit more. */
uint64_t es_submitted_by_others(const struct es_slot *slot) ES_LOCKED(es_state_lock);

/* Of all, what is still to run, as far as is known; takes in the time that has passed. */
uint64_t es_own_queued_ns(uint64_t now_ns) ES_LOCKED(es_state_lock);

/* How long the device takes for that, which is less where streams run beside each other. */
uint64_t es_queued_ns(uint64_t now_ns) ES_LOCKED(es_state_lock);

/* The streams in which something is queued, or may be, as far as is known. */
uint64_t es_streams_busy(void) ES_LOCKED(es_state_lock);

/* What is queued as a batch begins in this stream, and no more of it than the device is busy with for certain; nothing where no
 * other stream is busy. */
struct es_queued es_queued_beside(int stream, uint64_t now_ns) ES_LOCKED(es_state_lock);

/* What was queued as a batch began, with the batch itself, of so many launches, which was submitted to so many streams, as
 * if evenly. */
struct es_queued es_queued_with(struct es_queued queued, uint64_t used_ns, uint64_t launches, int streams)
    ES_LOCKED(es_state_lock);

/* What threads may still submit under this word of the gate without asking, all together, and how many threads may. */
struct es_unspent {
    uint64_t ns;
    uint64_t threads;
};
struct es_unspent es_unspent(uint32_t word) ES_LOCKED(es_state_lock);

/* Nothing is queued and nothing about to be, as far as the hook knows. */
bool es_submitted_drained(void) ES_LOCKED(es_state_lock);

/* Launches of all threads so far. Also without the lock: as far as the caller sees them. */
uint64_t es_submitted_launches(void);

/* Has any thread submitted what no marker ends yet, in a batch that it opened by then? */
bool es_submitted_open(uint64_t since_ns) ES_LOCKED(es_state_lock);

/* Has another thread a batch open that touched any of these streams? */
bool es_submitted_beside(uint64_t streams) ES_LOCKED(es_state_lock);

/* Has another thread a batch open with a launch of which no exact time is known? That is part of what was submitted, too. */
bool es_submitted_guessed_by_others(const struct es_slot *slot) ES_LOCKED(es_state_lock);

#endif
