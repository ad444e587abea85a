/* Contexts, and each thread's own. */
#ifndef SIMGPU_CONTEXT_H
#define SIMGPU_CONTEXT_H

#include "driver/stream/stream.h"
#include "machine/machine.h"

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
CUresult context_end(struct CUctx_st *context);
/* Ends all that was made in `context`, whose work is done (ended.c). */
void context_ended(struct CUctx_st *context);
/* Makes `context` current, over what was. */
CUresult context_push(struct CUctx_st *context);
void context_forget(struct CUctx_st *context);

#endif
