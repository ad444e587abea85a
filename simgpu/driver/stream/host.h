/* Host functions, and operations on memory, in a stream's order. */
#ifndef SIMGPU_HOST_H
#define SIMGPU_HOST_H

#include "driver/stream/memory_op.h"
#include "driver_api.h"

struct host_call {
    CUhostFn function;
    CUstreamCallback callback; /* or this one */
    struct memory_op op;       /* or this, where its kind is not OP_NONE */
    void *data;
    CUstream stream; /* as the callback is told */
};

CUresult host_push(struct CUstream_st *stream, const struct host_call *call);
/* Ends the context's thread, all of whose jobs are done. */
void host_end(struct CUctx_st *context);

#endif
