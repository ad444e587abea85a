#ifndef EDGESHARE_MARKERS_H
#define EDGESHARE_MARKERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/state.h"
#include "driver/contexts.h"

/* Events of the hook's own, each context's in a pool: nothing but this records, queries and waits for events. Functions take
 * es_state_lock themselves unless they say otherwise, and call the driver without it. */

enum { ES_POOL = 512 }; /* of each closed batch (ES_CLOSED) its start and its end */

/* NULL: there is none. */
struct es_marker {
    CUevent event;
    int context; /* it may be used while that is held, and ends with it */
};

/* Records one at the end of a noted stream: none when that is not to be done (it is capturing) or cannot be. `foreign`:
 * from another thread than the stream's; a thread's own default stream is then reached through the legacy one, which waits
 * for it. */
struct es_marker es_marker_record(int stream, bool foreign);

/* A marker is not needed any more: back to the pool of its context, unless somebody sleeps on it. */
void es_marker_give(int context, CUevent event) ES_LOCKED(es_state_lock);

/* May so many be taken that nothing needs, but that tell more? */
bool es_markers_left(uint32_t count) ES_LOCKED(es_state_lock);

/* Has the device come to a marker? */
enum es_reached {
    ES_REACHED_NOT,
    ES_REACHED,        /* or nothing of its context runs any more: a kernel failed, of which the program must hear */
    ES_REACHED_NEVER,  /* it was recorded into a capture of the program's, which had just spread to its stream */
    ES_REACHED_UNTOLD, /* the driver answered something else */
};

/* Of one in a context that is held. */
enum es_reached es_marker_reached(CUevent event);

/* The time from one to another, in a context that is current; ES_UNTOLD where the driver does not tell (core/times/spent.h). */
int64_t es_marker_elapsed_ns(CUevent from, CUevent to);

/* The hook's own thread is about to sleep on a marker of a context that is held. */
void es_marker_await_begin(struct es_marker marker) ES_LOCKED(es_state_lock);

/* The hook's own thread sleeps, in the driver, until the device has come to the marker, after es_marker_await_begin; gives the
 * marker back and the context up. False where the driver did not sleep, and what it said is nothing of the work. */
bool es_marker_await(struct es_marker marker, CUcontext owner);

/* In a forked child. */
void es_markers_reset(void);

#endif
