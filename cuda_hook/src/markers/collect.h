#ifndef EDGESHARE_COLLECT_H
#define EDGESHARE_COLLECT_H

#include <stdbool.h>
#include <stdint.h>

#include "driver_api.h"

/* What closed batches (closed.h) took, once they have ended. */

/* Takes closed batches off that have ended, and counts their GPU time. Never blocks; false, and at once, when another thread is
 * at it: then nobody knows what has ended since that one looked. */
bool es_collect(void);

/* Waits until the oldest has ended (in the driver, sleeping), and collects. For the helper alone. False when there is
 * none. */
bool es_collect_await(void);

/* Where streams run beside each other: all that was submitted to these is done, as who waited for it knows. To be said when what
 * had ended was collected. With the lock held. */
void es_collect_over(uint64_t streams, uint64_t now_ns);

/* So much by its estimate was waited for until `ended_ns` and ended by no marker: it is counted. `beside`: others' work may have
 * run in the same time. With the lock held. */
void es_collect_waited(uint64_t used_ns, uint64_t ended_ns, bool beside);

/* A context ends: its markers are nobody's any more. With the lock held. */
void es_collect_forget(int context);

/* This place is another stream's from now on. With the lock held. */
void es_collect_leave_stream(int stream);

/* In a forked child: what the parent queued is not its. */
void es_collect_reset(void);

#endif
