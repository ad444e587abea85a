/* Stream capture and graphs, as launches, copies and events meet them. */
#ifndef SIMGPU_GRAPH_H
#define SIMGPU_GRAPH_H

#include <pthread.h>

#include "driver/stream/host.h"
#include "driver/transfer/transfer.h"

struct launch_shape {
    unsigned int grid[3];
    unsigned int block[3];
    unsigned int shared_bytes;
};

/* Checks a launch and says how long it takes. */
CUresult launch_duration(struct CUfunc_st *function, const struct launch_shape *shape, void **params, void **extra,
                         uint32_t multiprocessors, uint64_t *duration_ns);

/* What it takes of a GPU whose engines overlap. */
uint32_t launch_place(const struct launch_shape *shape);

/* Launches, or adds a node to what the stream captures. */
CUresult launch_kernel(CUfunction handle, const struct launch_shape *shape, CUstream hStream, void **params, void **extra);

/* What a node of a graph does. */
struct node_work {
    uint32_t kind; /* enum simgpu_kind or what follows; 0: nothing */
    uint64_t duration_ns;
    uint32_t place; /* enum simgpu_place */
    struct host_call call;
    struct transfer transfer;    /* of a copy or a set */
    struct graph_memory *memory; /* of an allocation or a free */
};
enum { WORK_ALLOCATE = 100, WORK_FREE = 101 };

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
