#ifndef EDGESHARE_CORE_TIMELINE_H
#define EDGESHARE_CORE_TIMELINE_H

#include <stdint.h>

/* How much is queued on the device, in estimated nanoseconds: the difference of two sums since the beginning, what was
 * submitted and what of it has run. A batch is a run of launches of one thread; it ends at a marker or at a wait. A marker
 * that is done puts the second sum right: all is taken to have run that had been submitted when it was recorded, by
 * whichever thread. So it is within one stream, and on a device that runs one thing after the other; where streams overlap,
 * what others still run is then taken to be done early, until their own markers are awaited. */
struct es_timeline {
    uint64_t settled_ns; /* submitted by all batches that are not open any more */
    uint64_t run_ns;     /* so much had run … */
    uint64_t since_ns;   /* … at this time; the device goes on as long as there is something */
    uint64_t head_ns;    /* so much has run when the closed batch that ends next does; 0: none is closed */
};

/* How much is queued at `now_ns`, where open batches have submitted `open_ns`. What stands behind a head that overruns its
 * estimate keeps its full length. */
uint64_t es_timeline_queued_ns(const struct es_timeline *timeline, uint64_t open_ns, uint64_t now_ns);

/* How long ago the head should have ended; 0 when it should not have yet. */
uint64_t es_timeline_overdue_ns(const struct es_timeline *timeline, uint64_t now_ns);

/* Takes in the time that has passed: what is submitted from now on has not run in it. */
void es_timeline_look(struct es_timeline *timeline, uint64_t open_ns, uint64_t now_ns);

/* A batch is closed by a marker that was recorded when `mark_ns` had been submitted. */
void es_timeline_close(struct es_timeline *timeline, uint64_t mark_ns);

/* An open batch that submitted `used_ns` is not open any more: it has been closed, or was waited for and has run. */
void es_timeline_settle(struct es_timeline *timeline, uint64_t used_ns);

/* The head, with this mark, ended; next_ns is the mark of the closed batch that is the head now, 0 when there is none. */
void es_timeline_end(struct es_timeline *timeline, uint64_t mark_ns, uint64_t next_ns, uint64_t now_ns);

#endif
