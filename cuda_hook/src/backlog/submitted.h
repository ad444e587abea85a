#ifndef EDGESHARE_SUBMITTED_H
#define EDGESHARE_SUBMITTED_H

#include <stdbool.h>
#include <stdint.h>

#include "threads/slots.h"

/* What the threads have submitted, and what they still may, in estimated GPU time. All with the gate's lock held. */

/* In the open batch of one thread. */
uint64_t es_submitted_in(const struct es_slot *slot);

/* In all batches since the beginning (es_timeline). */
uint64_t es_submitted_ns(void);

/* Of that, by all threads but this one; UINT64_MAX: one of them is about to submit more. */
uint64_t es_submitted_by_others(const struct es_slot *slot);

/* Of all, what is still to run, as far as is known; takes in the time that has passed. */
uint64_t es_own_queued_ns(uint64_t now_ns);

/* How long the device takes for that, which is less where streams run beside each other. */
uint64_t es_queued_ns(uint64_t now_ns);

/* The streams in which something is queued, or may be, as far as is known. */
uint64_t es_streams_busy(void);

/* What is queued as a batch begins in this stream, and no more of it than the device is busy with for certain; nothing where no
 * other stream is busy. */
struct es_queued es_queued_beside(int stream, uint64_t now_ns);

/* The same with the batch itself, of so many launches, which was submitted to so many streams, as if evenly. */
struct es_queued es_queued_with(struct es_queued queued, uint64_t used_ns, uint64_t launches, int streams);

/* What threads may still submit under this word of the gate without asking, all together, and how many threads may. */
struct es_unspent {
    uint64_t ns;
    uint64_t threads;
};
struct es_unspent es_unspent(uint32_t word);

/* Nothing is queued and nothing about to be, as far as the hook knows. */
bool es_submitted_drained(void);

/* Launches of all threads so far. */
uint64_t es_submitted_launches(void);

/* Has any thread submitted what no marker ends yet, in a batch that it opened by then? */
bool es_submitted_open(uint64_t since_ns);

/* Has another thread a batch open that touched any of these streams? */
bool es_submitted_beside(uint64_t streams);

/* Has another thread a batch open with a launch of which no exact time is known? That is part of what was submitted, too. */
bool es_submitted_guessed_by_others(const struct es_slot *slot);

#endif
