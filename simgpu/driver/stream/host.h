/* Host functions, and operations on memory, in a stream's order. */
#ifndef SIMGPU_HOST_H
#define SIMGPU_HOST_H

#include "driver/capture/work.h"

CUresult host_push(struct CUstream_st *stream, const struct host_call *call);
/* Ends the context's thread, all of whose jobs are done. */
void host_end(struct CUctx_st *context);

#endif
