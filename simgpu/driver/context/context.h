/* Contexts, the streams and events that are made in them, and each thread's own. */
#ifndef SIMGPU_CONTEXT_H
#define SIMGPU_CONTEXT_H

#include "driver/base/objects.h"
#include "machine/machine.h"

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

struct CUevent_st {
    enum mark mark;
    unsigned int flags;
    bool recorded;
    struct CUctx_st *context;
    uint64_t after;
    uint64_t record_ns;
    uint64_t done_ns;             /* 0: not known to be done */
    struct capture *capture;      /* last recorded in a stream that is being captured */
    struct CUstream_st *captured; /* in this one */
    int32_t export_index;         /* of one that other processes may have too */
    uint64_t export_id;
    struct CUevent_st *next;
};

enum { LIMITS = 7, PEERS = SIMGPU_GPUS };

struct CUctx_st {
    enum mark mark;
    bool primary;
    CUdevice device;
    uint32_t gpu;
    uint32_t index;
    uint64_t id;
    unsigned int flags;
    unsigned int api_version;
    unsigned int attached; /* times, by cuCtxAttach */
    CUfunc_cache cache;
    size_t limits[LIMITS];
    struct simgpu_context *shared;
    struct simgpu_ring *ring;
    struct simgpu_orders *orders; /* NULL: engines do not overlap */

    pthread_mutex_t lock; /* for what follows */
    uint64_t queued_ns;
    uint64_t blocking_after; /* like a stream's `after`, for all streams that the legacy stream waits for */
    uint32_t streams_made;
    struct CUstream_st legacy;
    struct CUstream_st *streams; /* made, and threads' own */
    struct host_worker *host;    /* runs host functions; NULL: there were none */
    struct CUevent_st *events;
    uint64_t peers[PEERS]; /* ids of contexts whose memory this one's kernels may use; 0: none */
};

/* The calling thread's context, in `context`. Here and below `call` is who asks, for what is noted of a misuse. */
CUresult current_context(struct CUctx_st **context, const char *call);
CUresult check_context(const struct CUctx_st *context, const char *call);
/* The calling thread's context or NULL, without a word of misuse. */
struct CUctx_st *context_if_any(void);

/* The calling thread's context, or return why there is none. */
#define CURRENT(context)                                      \
    struct CUctx_st *context;                                 \
    do {                                                      \
        CUresult found = current_context(&context, __func__); \
        if (found != CUDA_SUCCESS)                            \
            return found;                                     \
    } while (0)

CUresult context_make(struct CUctx_st **made, CUdevice device, unsigned int flags, unsigned int api_version);
/* Waits for its work, and ends it with all that was made in it, whichever chapter that is of: the one function that is
 * declared here and defined above (ended.c). */
CUresult context_end(struct CUctx_st *context);
/* Ends the context itself, in which nothing is left. */
void context_drop(struct CUctx_st *context);
/* Makes `context` current, over what was. */
CUresult context_push(struct CUctx_st *context);
void context_forget(struct CUctx_st *context);

#endif
