#ifndef EDGESHARE_STREAMS_H
#define EDGESHARE_STREAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "driver_api.h"

/* The streams that the program submits to, each in a noted context (contexts.h). All functions take the gate's lock
 * themselves unless they say otherwise, and call the driver without it. */

enum {
    ES_STREAM_NONE = -1, /* it is capturing (its launches go into a graph and not to the device), or there is no such */
    ES_STREAM_MANY = -2, /* more contexts are there than can be told apart */
    ES_STREAM_LATER = -3, /* more streams are busy at once than can be told apart: once some of what is queued has ended */
};

/* The index of a stream, for sets of streams: noted when it is new. NULL and CU_STREAM_LEGACY are the same. */
int es_stream_index(CUstream stream);

/* Of a noted stream: the index of its context, and its handle. With the gate's lock held. */
int es_stream_context(int index);
CUstream es_stream_handle(int index);

/* The set of noted streams of a context (NULL: the current one), or of one stream (0 when it was never noted). */
uint64_t es_streams_of(CUcontext context);
uint64_t es_streams_like(CUstream stream);

/* Has the program submitted to more streams than one? With the gate's lock held. */
bool es_streams_many(void);

/* One that has no handle of its own: which one is meant, the current context and the thread say. */
static inline bool es_stream_is_default(CUstream stream)
{
    return stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

/* True also for a legacy stream that may not be touched because another stream of its context captures: the driver then
 * gives an error. Takes no lock. */
bool es_stream_capturing(CUstream stream);

/* While somebody is inside the driver on behalf of a noted stream; false when it has ended. With the gate's lock held. */
bool es_stream_hold(int index);
void es_stream_drop(int index);

/* A stream is about to end: returns when nobody uses it, or after a second. */
void es_stream_end(CUstream stream);

/* A context ends, with all its streams. With the gate's lock held. */
void es_streams_forget(int context);

/* In a forked child. */
void es_streams_reset(void);

#endif
