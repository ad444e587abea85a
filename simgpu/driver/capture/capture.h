/* Stream capture, as launches, copies and events meet it. */
#ifndef SIMGPU_CAPTURE_H
#define SIMGPU_CAPTURE_H

#include <pthread.h>

#include "driver/capture/work.h"
#include "driver/context/context.h"

/* A capture in progress: one graph, the stream that it began in and those that joined it. */
struct capture {
    struct CUgraph_st *graph;
    bool given; /* the graph was there before, and stays */
    struct CUstream_st *origin;
    CUstreamCaptureMode mode;
    pthread_t thread;
    uint64_t id;
    bool invalid;
    struct capture *next; /* of the process */
};

/* From here on the stream is captured, into `given` or, where that is NULL, into a new graph. */
CUresult capture_begin(struct CUstream_st *stream, CUstreamCaptureMode mode, struct CUgraph_st *given);
/* The capture that began in the stream is over, and this is what became of it. */
CUresult capture_end(struct CUstream_st *stream, struct CUgraph_st **graph);
/* A stream (or, NULL, every stream) of the context ends: captures that began there are dropped. */
void capture_forget(const struct CUctx_st *context, const struct CUstream_st *stream);
/* Adds work to the graph that the stream is captured into. */
CUresult capture_work(struct CUstream_st *stream, const struct node_work *work);
/* An event is recorded in a capturing stream, or a stream waits for an event recorded in one. */
CUresult capture_record(struct CUstream_st *stream, struct CUevent_st *event);
CUresult capture_wait(struct CUstream_st *stream, struct CUevent_st *event);
/* A call that cannot be captured was made on a capturing stream: the capture is void. */
CUresult capture_break(struct CUstream_st *stream);
/* A call that may not be made while somebody captures, unless its thread said that it knows: CUDA_SUCCESS, or the capture
 * is void. */
CUresult capture_check_unsafe(void);
/* Work on the legacy stream would wait for streams that are being captured. */
CUresult capture_check_legacy(struct CUstream_st *stream);
/* The whole context is waited for. */
CUresult capture_check_context(const struct CUctx_st *context);

#endif
