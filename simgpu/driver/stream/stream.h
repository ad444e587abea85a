/* Streams, each a place in its context's queue. */
#ifndef SIMGPU_STREAM_H
#define SIMGPU_STREAM_H

#include "driver/base/objects.h"

struct CUstream_st {
    enum mark mark;
    struct CUctx_st *context;
    unsigned int flags;
    int priority;
    uint32_t id;
    uint64_t after;           /* the stream is done when the entry before this one is */
    struct capture *capture;  /* NULL: work on it runs */
    bool joined;              /* what it captured is before something that its capture's first stream does */
    struct CUstream_st *next; /* of its context */
};

/* The stream that a handle names for this thread. */
CUresult find_stream(CUstream handle, struct CUstream_st **stream, const char *call);
/* When the work queued on it so far is done. */
uint64_t stream_after(const struct CUstream_st *stream);
void streams_end(struct CUctx_st *context);

#endif
