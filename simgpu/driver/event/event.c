/* Events: an event is done when the last entry is that was before it in its stream. It is the GPU that writes down when, so
 * one that is recorded into an empty stream while another context has the GPU waits for its turn: it is an entry of its
 * own. */
#include "driver/event/event.h"
#include "driver/base/driver.h"
#include "driver/base/objects.h"
#include "driver/base/pace.h"
#include "driver/capture/capture.h"
#include "driver/context/context.h"
#include "driver/event/shared_event.h"
#include "driver/stream/queue.h"
#include "driver/stream/stream.h"

static struct object_pool pool = {.lock = PTHREAD_MUTEX_INITIALIZER};
static uint64_t live; /* atomic: events of all contexts that were made and are there */

/* For a test to ask of its own process; no function of the real driver's. */
EXPORT uint64_t simgpu_live_events(void) { return load_u64(&live); }

static void drop(struct CUevent_st *event) {
    shared_event_end(event);
    object_drop(&pool, event);
    __atomic_fetch_sub(&live, 1, __ATOMIC_RELAXED);
}

#define EVENT(event)                          \
    do {                                      \
        CHECK_DRIVER();                       \
        if (!LIVES(event, MARK_EVENT))        \
            return CUDA_ERROR_INVALID_HANDLE; \
    } while (0)

/* Notes a call that needs a context by its documentation and has none: it goes on, as the event says which is meant. */
static void expect_context(const char *call) {
    const struct CUctx_st *context = context_if_any();
    if (!context)
        misused(call, "", MISUSE_NO_CONTEXT);
    else
        (void)is_live(context, MARK_CONTEXT, call);
}

void events_end(struct CUctx_st *context) {
    while (context->events) {
        struct CUevent_st *event = context->events;
        context->events = event->next;
        drop(event);
    }
}

struct CUevent_st *event_make(struct CUctx_st *context, unsigned int flags) {
    struct CUevent_st *event = object_make(&pool, sizeof *event);
    if (!event)
        return NULL;
    event->context = context;
    event->flags = flags;
    event->export_index = -1;
    pthread_mutex_lock(&context->lock);
    event->next = context->events;
    context->events = event;
    event->mark = MARK_EVENT;
    pthread_mutex_unlock(&context->lock);
    __atomic_fetch_add(&live, 1, __ATOMIC_RELAXED);
    return event;
}

static void destroy(struct CUevent_st *event) {
    struct CUctx_st *context = event->context;
    pthread_mutex_lock(&context->lock);
    for (struct CUevent_st **link = &context->events; *link; link = &(*link)->next) {
        if (*link == event) {
            *link = event->next;
            break;
        }
    }
    pthread_mutex_unlock(&context->lock);
    drop(event);
}

EXPORT CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags) {
    CURRENT(context);
    const unsigned int known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    if (!phEvent || (Flags & ~known) || ((Flags & CU_EVENT_INTERPROCESS) && !(Flags & CU_EVENT_DISABLE_TIMING)))
        return CUDA_ERROR_INVALID_VALUE;
    struct CUevent_st *event = event_make(context, Flags);
    if (!event)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = is_shared_event(event) ? shared_event_make(event, context) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS)
        *phEvent = event;
    else
        destroy(event);
    return result;
}

EXPORT CUresult cuEventDestroy_v2(CUevent hEvent) {
    EVENT(hEvent);
    expect_context(__func__);
    destroy(hEvent);
    return CUDA_SUCCESS;
}

static CUresult do_cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags) {
    EVENT(hEvent);
    struct CUstream_st *stream;
    CUresult result = find_stream(hStream, &stream, __func__);
    if (result != CUDA_SUCCESS)
        return result;
    if (flags > CU_EVENT_RECORD_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    if (hEvent->context != stream->context)
        return CUDA_ERROR_INVALID_HANDLE;
    result = queue_error(stream->context);
    if (result != CUDA_SUCCESS)
        return result;
    result = capture_check_legacy(stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->capture)
        return capture_record(stream, hEvent);
    pace_spend(pace_now()->event_record_ns);
    result = queue_gather(stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (queue_known_done(stream->context, stream_after(stream)) && queue_is_away(stream->context)) {
        result = queue_push(stream, SIMGPU_ORDER, 0, SIMGPU_PLACE_ALL, NULL);
        if (result != CUDA_SUCCESS)
            return result;
    }
    pthread_mutex_lock(&stream->context->lock);
    hEvent->capture = NULL;
    hEvent->after = stream_after(stream);
    hEvent->record_ns = clock_now_ns();
    store_u64(&hEvent->done_ns, 0);
    hEvent->recorded = true;
    queue_settle(hEvent);
    shared_event_record(hEvent, stream->context, hEvent->after);
    pthread_mutex_unlock(&stream->context->lock);
    __atomic_fetch_add(&driver.machine.shared->processes[driver.machine.slot].events[stream->context->gpu], 1, __ATOMIC_RELAXED);
    return CUDA_SUCCESS;
}
EXPORT_PTSZ(cuEventRecordWithFlags, (CUevent hEvent, CUstream hStream, unsigned int flags), hEvent, hStream, flags)

static CUresult do_cuEventRecord(CUevent hEvent, CUstream hStream) {
    return do_cuEventRecordWithFlags(hEvent, hStream, CU_EVENT_RECORD_DEFAULT);
}
EXPORT_PTSZ(cuEventRecord, (CUevent hEvent, CUstream hStream), hEvent, hStream)

EXPORT CUresult cuEventQuery(CUevent hEvent) {
    EVENT(hEvent);
    if (hEvent->capture)
        return CUDA_ERROR_CAPTURED_EVENT;
    pace_spend(pace_now()->event_query_ns);
    CUresult result = capture_check_unsafe();
    if (result == CUDA_SUCCESS && is_shared_event(hEvent))
        return shared_event_query(hEvent);
    if (result == CUDA_SUCCESS)
        result = queue_error(hEvent->context);
    if (result != CUDA_SUCCESS || !hEvent->recorded || load_u64(&hEvent->done_ns))
        return result;
    return queue_done(hEvent->context, hEvent->after) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

EXPORT CUresult cuEventSynchronize(CUevent hEvent) {
    EVENT(hEvent);
    expect_context(__func__);
    if (hEvent->capture)
        return CUDA_ERROR_CAPTURED_EVENT;
    CUresult result = capture_check_unsafe();
    bool blocking = hEvent->flags & CU_EVENT_BLOCKING_SYNC || hEvent->context->flags & CU_CTX_SCHED_BLOCKING_SYNC;
    if (result == CUDA_SUCCESS && is_shared_event(hEvent))
        return shared_event_wait(hEvent, blocking);
    if (result != CUDA_SUCCESS || !hEvent->recorded)
        return result;
    return queue_wait(hEvent->context, hEvent->after, blocking);
}

static CUresult elapsed(float *milliseconds, struct CUevent_st *start, struct CUevent_st *end, const char *call) {
    CHECK_DRIVER();
    if (!is_live(start, MARK_EVENT, call) || !is_live(end, MARK_EVENT, call))
        return CUDA_ERROR_INVALID_HANDLE;
    expect_context(call);
    if (!milliseconds)
        return CUDA_ERROR_INVALID_VALUE;
    if (start->context != end->context || ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) || !start->recorded ||
        !end->recorded)
        return CUDA_ERROR_INVALID_HANDLE;
    struct CUctx_st *context = start->context;
    CUresult error = queue_error(context);
    if (error != CUDA_SUCCESS)
        return error;
    queue_done(context, start->after > end->after ? start->after : end->after);
    if (context->orders)
        queue_done(context, start->after > end->after ? end->after : start->after);
    pthread_mutex_lock(&context->lock);
    queue_settle(start);
    queue_settle(end);
    bool known = start->done_ns && end->done_ns;
    /* A real timer ticks about every 0.5 µs; this one is exact. */
    if (known)
        *milliseconds = (float)((double)((int64_t)(end->done_ns - start->done_ns)) / 1e6);
    pthread_mutex_unlock(&context->lock);
    return known ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

EXPORT CUresult cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd) {
    return elapsed(pMilliseconds, hStart, hEnd, __func__);
}
EXPORT CUresult cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd) {
    return elapsed(pMilliseconds, hStart, hEnd, __func__);
}
