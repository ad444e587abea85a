/* Streams, each a place in its context's queue. */
#ifndef SIMGPU_STREAM_H
#define SIMGPU_STREAM_H

#include "driver/context/context.h"

/* The stream that a handle names for this thread. */
CUresult find_stream(CUstream handle, struct CUstream_st **stream, const char *call);
/* When the work queued on it so far is done. */
uint64_t stream_after(const struct CUstream_st *stream);
void streams_end(struct CUctx_st *context);

#endif
