#ifndef EDGESHARE_BATCHES_H
#define EDGESHARE_BATCHES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/state.h"
#include "threads/slots.h"

/* Batches of launches: open ones belong to a thread (struct es_batch_open), closed ones end at a marker and stand in one
 * queue (closed.h). GPU time is counted from marker to marker, so it is a union over the streams. */

/* Opens a batch for the calling thread, which begins with this stream and may use drawn_ns. Returns true when the
 * device is idle and this burst is to be timed (always when its function's time is unknown): the caller then records
 * the start (without the lock) and stores it in the batch. */
bool es_batch_open(struct es_slot *slot, int stream, uint64_t drawn_ns, uint64_t now_ns, bool unknown, bool held)
    ES_LOCKED(es_state_lock);

/* The open batch may use drawn_ns more, beyond what it has used. */
void es_batch_extend(struct es_slot *slot, uint64_t drawn_ns) ES_LOCKED(es_state_lock);

/* Is the open batch long enough to be closed: half of the queue's cap? A marker costs the device about a microsecond. */
bool es_batch_full(const struct es_slot *slot, uint64_t cap_ns) ES_LOCKED(es_state_lock);

/* Closes a thread's open batch by markers in all streams that it touched. The caller is that thread, or the helper while
 * the gate is shut and the slot is not busy (foreign). */
void es_batch_close(struct es_slot *slot, bool foreign);

/* Closes the open batches of all threads, while the gate is shut: false when some are within the driver, and theirs stayed
 * open. */
bool es_batches_close_all(void);

/* The batch holds nothing any more, its thread must ask before the next. When that thread is not the one that does
 * this, it may be about to submit as part of the batch: without a word it looks again. */
void es_batch_clear(struct es_slot *slot) ES_LOCKED(es_state_lock);

/* A context ends: its markers are nobody's any more. */
void es_batches_forget(int context) ES_LOCKED(es_state_lock);

#endif
