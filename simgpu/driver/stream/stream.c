/* Streams: made ones, the legacy default stream, and each thread's own default stream. */
#include <stdlib.h>

#include "driver/base/driver.h"
#include "driver/base/objects.h"
#include "driver/base/pace.h"
#include "driver/capture/capture.h"
#include "driver/context/context.h"
#include "driver/stream/queue.h"
#include "driver/stream/stream.h"

enum { THREAD_STREAMS = 8 };

/* The per-thread default streams of this thread, for the contexts that it used last. */
static __thread struct {
    struct CUctx_st *context;
    uint64_t id;
    struct CUstream_st *stream;
} own[THREAD_STREAMS];
static __thread unsigned int own_next;

static struct object_pool pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct CUstream_st *make(struct CUctx_st *context, unsigned int flags, int priority) {
    struct CUstream_st *stream = object_make(&pool, sizeof *stream);
    if (!stream)
        return NULL;
    stream->context = context;
    stream->flags = flags;
    stream->priority = priority;
    pthread_mutex_lock(&context->lock);
    stream->id = ++context->streams_made;
    stream->next = context->streams;
    context->streams = stream;
    stream->mark = MARK_STREAM;
    pthread_mutex_unlock(&context->lock);
    return stream;
}

static CUresult thread_stream(struct CUctx_st *context, struct CUstream_st **stream) {
    for (unsigned int index = 0; index < THREAD_STREAMS; index++) {
        if (own[index].context == context && own[index].id == context->id) {
            *stream = own[index].stream;
            return CUDA_SUCCESS;
        }
    }
    *stream = make(context, CU_STREAM_DEFAULT, 0);
    if (!*stream)
        return CUDA_ERROR_OUT_OF_MEMORY;
    own[own_next].context = context;
    own[own_next].id = context->id;
    own[own_next].stream = *stream;
    own_next = (own_next + 1) % THREAD_STREAMS;
    return CUDA_SUCCESS;
}

CUresult find_stream(CUstream handle, struct CUstream_st **stream, const char *call) {
    struct CUctx_st *context;
    CUresult found = current_context(&context, call);
    if (found != CUDA_SUCCESS)
        return found;
    if (!handle || handle == CU_STREAM_LEGACY) {
        *stream = &context->legacy;
        return CUDA_SUCCESS;
    }
    if (handle == CU_STREAM_PER_THREAD)
        return thread_stream(context, stream);
    if (!is_live(handle, MARK_STREAM, call))
        return CUDA_ERROR_INVALID_HANDLE;
    *stream = handle;
    return check_context(handle->context, call);
}

uint64_t stream_after(const struct CUstream_st *stream) {
    /* The legacy stream waits for every stream that is not made to ignore it; where engines overlap, as last gathered. */
    bool all = stream == &stream->context->legacy && !stream->context->orders;
    return all ? load_u64(&stream->context->blocking_after) : load_u64(&stream->after);
}

void streams_end(struct CUctx_st *context) {
    while (context->streams) {
        struct CUstream_st *stream = context->streams;
        context->streams = stream->next;
        object_drop(&pool, stream);
    }
}

/* ---- making and ending ---- */

static CUresult create(CUstream *phStream, unsigned int flags, int priority) {
    CURRENT(context);
    if (!phStream || (flags & ~(unsigned int)CU_STREAM_NON_BLOCKING))
        return CUDA_ERROR_INVALID_VALUE;
    /* A priority out of range becomes the nearest in range. */
    if (priority > 0)
        priority = 0;
    if (priority < -5)
        priority = -5;
    *phStream = make(context, flags, priority);
    return *phStream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuStreamCreate(CUstream *phStream, unsigned int Flags) { return create(phStream, Flags, 0); }

EXPORT CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority) {
    return create(phStream, flags, priority);
}

EXPORT CUresult cuStreamDestroy_v2(CUstream hStream) {
    CHECK_DRIVER();
    /* The default streams cannot be destroyed. What is queued on the stream still runs. */
    if (!hStream || hStream == CU_STREAM_LEGACY || hStream == CU_STREAM_PER_THREAD || !LIVES(hStream, MARK_STREAM))
        return CUDA_ERROR_INVALID_HANDLE;
    struct CUctx_st *context = hStream->context;
    capture_forget(context, hStream);
    pthread_mutex_lock(&context->lock);
    for (struct CUstream_st **link = &context->streams; *link; link = &(*link)->next) {
        if (*link == hStream) {
            *link = hStream->next;
            break;
        }
    }
    pthread_mutex_unlock(&context->lock);
    object_drop(&pool, hStream);
    return CUDA_SUCCESS;
}

/* ---- asking ---- */

#define STREAM(stream)                                            \
    struct CUstream_st *stream;                                   \
    do {                                                          \
        CUresult found = find_stream(hStream, &stream, __func__); \
        if (found != CUDA_SUCCESS)                                \
            return found;                                         \
    } while (0)

static CUresult do_cuStreamGetPriority(CUstream hStream, int *priority) {
    STREAM(stream);
    if (!priority)
        return CUDA_ERROR_INVALID_VALUE;
    *priority = stream->priority;
    return CUDA_SUCCESS;
}
EXPORT_PTSZ(cuStreamGetPriority, (CUstream hStream, int *priority), hStream, priority)

static CUresult do_cuStreamGetFlags(CUstream hStream, unsigned int *flags) {
    STREAM(stream);
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = stream->flags;
    return CUDA_SUCCESS;
}
EXPORT_PTSZ(cuStreamGetFlags, (CUstream hStream, unsigned int *flags), hStream, flags)

static CUresult do_cuStreamGetId(CUstream hStream, unsigned long long *streamId) {
    STREAM(stream);
    if (!streamId)
        return CUDA_ERROR_INVALID_VALUE;
    *streamId = stream->context->id << 32 | stream->id;
    return CUDA_SUCCESS;
}
EXPORT_PTSZ(cuStreamGetId, (CUstream hStream, unsigned long long *streamId), hStream, streamId)

static CUresult do_cuStreamGetCtx(CUstream hStream, CUcontext *pctx) {
    STREAM(stream);
    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    *pctx = stream->context;
    return CUDA_SUCCESS;
}
EXPORT_PTSZ(cuStreamGetCtx, (CUstream hStream, CUcontext *pctx), hStream, pctx)

static CUresult do_cuStreamGetDevice(CUstream hStream, CUdevice *device) {
    STREAM(stream);
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = stream->context->device;
    return CUDA_SUCCESS;
}
EXPORT_PTSZ(cuStreamGetDevice, (CUstream hStream, CUdevice *device), hStream, device)

static CUresult do_cuStreamQuery(CUstream hStream) {
    STREAM(stream);
    pace_spend(pace_now()->event_query_ns);
    if (stream->capture)
        return capture_break(stream);
    CUresult error = capture_check_legacy(stream);
    if (error == CUDA_SUCCESS)
        error = queue_error(stream->context);
    if (error != CUDA_SUCCESS)
        return error;
    error = queue_gather(stream);
    if (error != CUDA_SUCCESS)
        return error;
    return queue_done(stream->context, stream_after(stream)) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
EXPORT_PTSZ(cuStreamQuery, (CUstream hStream), hStream)

static CUresult do_cuStreamSynchronize(CUstream hStream) {
    STREAM(stream);
    if (stream->capture)
        return capture_break(stream);
    CUresult error = capture_check_legacy(stream);
    if (error == CUDA_SUCCESS)
        error = queue_gather(stream);
    if (error != CUDA_SUCCESS)
        return error;
    return queue_wait(stream->context, stream_after(stream), stream->context->flags & CU_CTX_SCHED_BLOCKING_SYNC);
}
EXPORT_PTSZ(cuStreamSynchronize, (CUstream hStream), hStream)
