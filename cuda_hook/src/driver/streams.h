#ifndef EDGESHARE_STREAMS_H
#define EDGESHARE_STREAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/state.h"
#include "driver_api.h"

/* The streams that the program submits to, each in a noted context (contexts.h). All functions take es_state_lock
 * themselves unless they say otherwise, and call the driver without it. */

enum {
    ES_STREAM_NONE = -1,  /* it is capturing (its launches go into a graph and not to the device), or there is no such */
    ES_STREAM_MANY = -2,  /* more contexts are there than can be told apart */
    ES_STREAM_LATER = -3, /* more streams are busy at once than can be told apart: once some of what is queued has ended */
};

/* The number of a stream, which is noted when it is new. NULL and CU_STREAM_LEGACY are the same. Its index in sets of streams is
 * what remains when it is divided by ES_STREAMS; another's once that has been given away, which may be as soon as the lock
 * is not held and no open batch has touched it. */
int es_stream_number(CUstream stream);

/* The index of the stream of this number; -1: another has it by now, or the stream has ended. */
int es_stream_index(int number) ES_LOCKED(es_state_lock);

/* The set of noted streams of a context (NULL: the current one), or of one stream (0 when it was never noted). */
uint64_t es_streams_of(CUcontext context);
uint64_t es_streams_like(CUstream stream);

/* So many are noted. */
uint32_t es_streams_count(void) ES_LOCKED(es_state_lock);

/* Has the program submitted to more streams than one? */
bool es_streams_many(void) ES_LOCKED(es_state_lock);

/* One that has no handle of its own: which one is meant, the current context and the thread say. */
static inline bool es_stream_is_default(CUstream stream) { return stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD; }

/* True also for a legacy stream that may not be touched because another stream of its context captures: the driver then
 * gives an error. Takes no lock. */
bool es_stream_capturing(CUstream stream);

/* A stretch in which the hook is inside the driver on behalf of a noted stream: neither it nor its context ends in it, and no
 * capture begins, but that of another thread which does not come back from the driver for a second. */
struct es_use {
    int stream, context;
    CUstream handle;
    CUcontext owner;
};

/* False when there is no such stream any more, or its context has ended. es_stream_used ends the stretch. */
bool es_stream_use(int index, struct es_use *use);
void es_stream_used(const struct es_use *use);

/* A stream is about to end: nobody starts to use it any more. Returns when nobody does, or after a second. */
void es_stream_end(CUstream stream);

/* The program makes a stream capture, which uses of streams would break: returns when there is none, or after a second. Until
 * it has begun none is started. `lasts`: a capture has begun, whose end is still to come. */
void es_capture_begin(void);
void es_capture_begun(bool lasts);

/* One has ended. */
void es_capture_ended(void);

/* Whether one may last, as far as one knows: the end of some is not seen, those whose stream was destroyed. Takes no lock. */
bool es_captures_last(void);

/* A context ends, with all its streams. */
void es_streams_forget(int context) ES_LOCKED(es_state_lock);

/* In a forked child. */
void es_streams_reset(void);

#endif
