#ifndef EDGESHARE_CONTEXTS_H
#define EDGESHARE_CONTEXTS_H

#include <stdbool.h>
#include <stdint.h>

#include "driver_api.h"

/* The contexts that the program submits to, each with a pool of events of the hook's own (markers), and the streams it
 * submits to. All functions take the gate's lock themselves unless they say otherwise, and call the driver without it. */

enum { ES_CONTEXTS = 256, ES_POOL = 64 };

/* A stretch of calls of the hook's own: in it, what the driver forbids while some thread of the program captures (event
 * queries among others) is allowed, and breaks no capture. */
struct es_quiet {
    CUstreamCaptureMode mode;
    bool exchanged;
};
struct es_quiet es_quiet_begin(void);
void es_quiet_end(struct es_quiet quiet);

enum {
    ES_STREAM_NONE = -1, /* it is capturing (its launches go into a graph and not to the device), or there is no such */
    ES_STREAM_MANY = -2, /* more streams or contexts are busy at once than can be told apart */
};

/* The index of a stream, for sets of streams: noted when it is new. NULL and CU_STREAM_LEGACY are the same. */
int es_stream_index(CUstream stream);

/* Where a noted stream is; with the gate's lock held. */
int es_stream_context(int index);
CUstream es_stream_handle(int index);

/* The set of noted streams of a context (NULL: the current one), or of one stream (0 when it was never noted). */
uint64_t es_streams_of(CUcontext context);
uint64_t es_streams_like(CUstream stream);

/* More than one context: a default stream's handle does not say which one is meant. */
bool es_contexts_many(void);

/* Records an event of the hook's own at the end of a noted stream. Returns NULL when that is not to be done (it is
 * capturing) or cannot be. `foreign`: from another thread than the stream's; a thread's own default stream is then
 * reached through the legacy one, which waits for it. */
CUevent es_marker_record(int stream, bool foreign);

/* Gives a marker back to its pool; with the gate's lock held. */
void es_marker_give(int context, CUevent event);

/* Makes a context current in the calling thread, which must be the hook's own. */
void es_context_enter(int context);

/* A context is about to end, with all its streams and events. After begin, nobody starts to use it; begin returns when
 * nobody does any more, or after a second. */
void es_context_end(CUcontext context);

/* A stream is about to end. */
void es_stream_end(CUstream stream);

/* Is a noted context still there? With the gate's lock held. */
bool es_context_alive(int context);

/* While somebody is inside the driver on behalf of this context; false when it has ended. With the gate's lock held. */
bool es_context_hold(int context);
void es_context_drop(int context);

void es_contexts_reset(void);

#endif
