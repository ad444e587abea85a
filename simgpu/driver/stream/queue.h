/* A context's queue: what is put into it, and who waits for what. */
#ifndef SIMGPU_QUEUE_H
#define SIMGPU_QUEUE_H

#include "driver/stream/stream.h"
#include "machine/engine/engine.h"

/* Queues work on a stream: blocks while the context's queue is full. `number` (may be NULL) becomes its number. `place`:
 * what it takes of a GPU whose engines overlap (enum simgpu_place). */
CUresult queue_push(struct CUstream_st *stream, uint32_t kind, uint64_t duration_ns, uint32_t place, uint64_t *number);
/* Where engines overlap: later work on the stream waits for the entry before `after` too. */
CUresult queue_order(struct CUstream_st *stream, uint64_t after);
/* Where engines overlap: an entry stands for all that the legacy stream is behind, so that it can be waited for. */
CUresult queue_gather(struct CUstream_st *stream);
/* Waits until the entry before `after` is done, and with it all that is before it in its stream (without overlap: in its
 * context). */
CUresult queue_wait(struct CUctx_st *context, uint64_t after, bool blocking);
/* Waits until it is an entry's turn, all that it is behind being done. */
CUresult queue_wait_turn(struct CUctx_st *context, uint64_t number, bool blocking);
/* Waits until all is done that the context has queued. */
CUresult queue_drain(struct CUctx_st *context, bool blocking);
/* Whether the GPU is another context's now, or is being switched to this one. */
bool queue_is_away(struct CUctx_st *context);
/* Whether the entry before `after` is known to be done; the second brings the simulation up to now first. */
bool queue_known_done(const struct CUctx_st *context, uint64_t after);
bool queue_done(struct CUctx_st *context, uint64_t after);
/* Notes when the event was done, once it is. Under the context's lock. */
void queue_settle(struct CUevent_st *event);
/* The error that the context is in, if any. */
CUresult queue_error(const struct CUctx_st *context);

#endif
