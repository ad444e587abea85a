#ifndef EDGESHARE_CORE_TIMELINE_H
#define EDGESHARE_CORE_TIMELINE_H

#include <stdint.h>

/* What is queued on the device, in estimated nanoseconds. A batch is a run of launches between two markers; batches
 * end in the order in which they were closed. An open batch counts as all that it may still use. */
struct es_timeline {
    uint64_t open_ns;       /* drawn by open batches */
    uint64_t closed_ns;     /* of all closed batches that have not ended, the head included */
    uint64_t head_ns;       /* of the head: the closed batch that ends next; 0 when there is none */
    uint64_t head_since_ns; /* when the head (or, with none closed, the open batch) began to run */
};

/* How much is queued at `now_ns`. What runs counts down with time, but never below nothing: what stands behind a head
 * that overruns its estimate keeps its full length. */
uint64_t es_timeline_backlog_ns(const struct es_timeline *timeline, uint64_t now_ns);

/* How long ago the head should have ended; 0 when it should not have yet. */
uint64_t es_timeline_overdue_ns(const struct es_timeline *timeline, uint64_t now_ns);

/* A batch opens, and may use `drawn_ns`. */
void es_timeline_open(struct es_timeline *timeline, uint64_t drawn_ns, uint64_t now_ns);

/* An open batch is given up: nothing of it is queued. */
void es_timeline_drop(struct es_timeline *timeline, uint64_t drawn_ns);

/* An open batch is closed, having used `used_ns`. With nothing closed before it (`head`), it runs since
 * opened_ns or since the end of the one before it, whichever is later. */
void es_timeline_close(struct es_timeline *timeline, uint64_t drawn_ns, uint64_t used_ns, uint64_t opened_ns, int head);

/* The head ended; next_ns is the estimate of the batch that is the head now, 0 when there is none. */
void es_timeline_end(struct es_timeline *timeline, uint64_t next_ns, uint64_t now_ns);

#endif
