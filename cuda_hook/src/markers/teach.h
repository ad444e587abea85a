#ifndef EDGESHARE_TEACH_H
#define EDGESHARE_TEACH_H

#include <stdint.h>

#include "backlog/closed.h"
#include "base/state.h"

/* What the ends of batches teach: how long functions take, whether streams run beside each other, how long the device takes to
 * come to this client. */

/* Ends that were seen before came so much sooner than they had been seen: by the markers, a later one has come already. */
void es_teach_sooner(uint64_t by_ns) ES_LOCKED(es_state_lock);

/* The oldest batch has ended; the latest that was counted before it stood in this stream. */
void es_teach_ended(const struct es_closed *batch, const struct es_spent *spent, int latest_stream) ES_LOCKED(es_state_lock);

/* A batch that is not the oldest has ended: it ran beside other streams. */
void es_teach_passed_over(const struct es_closed *batch, uint64_t ended_ns) ES_LOCKED(es_state_lock);

/* A batch that waited for the device to come to its context began start_ns before its end. When the device fell free may have
 * been foretold wrongly: no single time counts for more than twice the usual one. */
void es_teach_hand_over(const struct es_closed *batch, int64_t start_ns, uint64_t ended_ns) ES_LOCKED(es_state_lock);

/* This place is another stream's from now on. */
void es_teach_leave_stream(int stream) ES_LOCKED(es_state_lock);

/* In a forked child. */
void es_teach_reset(void);

#endif
