/* A stream waits for an event. */
#include "driver/base/driver.h"
#include "driver/base/objects.h"
#include "driver/capture/capture.h"
#include "driver/context/context.h"
#include "driver/event/shared_event.h"
#include "driver/stream/queue.h"
#include "driver/stream/stream.h"

static CUresult do_cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int flags) {
    struct CUstream_st *stream;
    CUresult error = find_stream(hStream, &stream, __func__);
    if (error != CUDA_SUCCESS)
        return error;
    if (!LIVES(hEvent, MARK_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    if (flags > 1)
        return CUDA_ERROR_INVALID_VALUE;
    error = capture_check_legacy(stream);
    if (error != CUDA_SUCCESS)
        return error;
    if (stream->capture || hEvent->capture)
        return capture_wait(stream, hEvent);
    uint64_t after = hEvent->after;
    if (is_shared_event(hEvent)) {
        struct CUctx_st other;
        if (!shared_event_target(hEvent, &other, &after))
            return CUDA_SUCCESS;
        if (other.shared != stream->context->shared)
            return shared_event_wait(hEvent, false);
    } else if (!hEvent->recorded) {
        return CUDA_SUCCESS;
    } else if (hEvent->context != stream->context) {
        /* Another context's work: the thread waits where a real driver would let only the stream wait. */
        return queue_wait(hEvent->context, after, false);
    }
    if (stream->context->orders)
        return queue_order(stream, after);
    /* Within a context work runs in the order in which it was queued, so later work on the stream is behind the
     * event's anyway; what the stream itself is done with moves. */
    pthread_mutex_lock(&stream->context->lock);
    if (stream->after < after)
        store_u64(&stream->after, after);
    if (!(stream->flags & CU_STREAM_NON_BLOCKING) && stream->context->blocking_after < stream->after)
        store_u64(&stream->context->blocking_after, stream->after);
    pthread_mutex_unlock(&stream->context->lock);
    return CUDA_SUCCESS;
}
EXPORT_PTSZ(cuStreamWaitEvent, (CUstream hStream, CUevent hEvent, unsigned int Flags), hStream, hEvent, Flags)
