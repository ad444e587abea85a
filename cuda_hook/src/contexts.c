#include "contexts.h"

#include <string.h>

#include "batches.h"
#include "gate.h"
#include "symbols.h"

struct context {
    CUcontext handle; /* NULL: a free place */
    bool ending;
    uint32_t users;
    uint32_t pooled;
    CUevent pool[ES_POOL];
};

static struct context contexts[ES_CONTEXTS];
static uint32_t context_count; /* ever, of this process: an upper bound of those alive */

struct es_quiet es_quiet_begin(void)
{
    struct es_quiet quiet = {.mode = CU_STREAM_CAPTURE_MODE_RELAXED};

    quiet.exchanged = ES_DRIVER(cuThreadExchangeStreamCaptureMode) != NULL &&
                      ES_DRIVER(cuThreadExchangeStreamCaptureMode)(&quiet.mode) == CUDA_SUCCESS;
    return quiet;
}

void es_quiet_end(struct es_quiet quiet)
{
    if (quiet.exchanged)
        (void)ES_DRIVER(cuThreadExchangeStreamCaptureMode)(&quiet.mode);
}

CUcontext es_context_current(void)
{
    CUcontext context = NULL;

    return ES_DRIVER(cuCtxGetCurrent) != NULL && ES_DRIVER(cuCtxGetCurrent)(&context) == CUDA_SUCCESS ? context : NULL;
}

int es_context_note(CUcontext handle)
{
    int place = -1;

    for (int i = 0; i < ES_CONTEXTS; i++) {
        if (contexts[i].handle == handle && !contexts[i].ending)
            return i;
        if (contexts[i].handle == NULL && place < 0)
            place = i;
    }
    if (place >= 0) {
        contexts[place] = (struct context){.handle = handle};
        context_count++;
        /* What threads remember about default streams was of the one context so far. */
        if (context_count > 1)
            es_gate_forget_all();
    }
    return place;
}

CUcontext es_context_handle(int index)
{
    return contexts[index].handle;
}

bool es_contexts_many(void)
{
    return __atomic_load_n(&context_count, __ATOMIC_RELAXED) > 1;
}

/* A marker from the pool or a new one; NULL when the driver gives none. */
static CUevent take_event(int index)
{
    CUevent event = NULL;
    CUcontext handle;
    CUcontext ignored;
    bool pushed;

    es_lock_take(&es_gate.lock);
    handle = contexts[index].handle;
    if (contexts[index].pooled > 0)
        event = contexts[index].pool[--contexts[index].pooled];
    es_lock_give(&es_gate.lock);
    if (event != NULL)
        return event;
    pushed = es_context_current() != handle;
    if (pushed && ES_DRIVER(cuCtxPushCurrent_v2)(handle) != CUDA_SUCCESS)
        return NULL;
    if (ES_DRIVER(cuEventCreate)(&event, CU_EVENT_BLOCKING_SYNC) != CUDA_SUCCESS)
        event = NULL;
    if (pushed)
        (void)ES_DRIVER(cuCtxPopCurrent_v2)(&ignored);
    return event;
}

/* A default stream is that of the current context. */
static CUresult record(CUevent event, CUstream stream, CUcontext context)
{
    CUcontext ignored;
    CUresult result;

    if (!es_stream_is_default(stream) || es_context_current() == context)
        return ES_DRIVER(cuEventRecord)(event, stream);
    result = ES_DRIVER(cuCtxPushCurrent_v2)(context);
    if (result == CUDA_SUCCESS) {
        result = ES_DRIVER(cuEventRecord)(event, stream);
        (void)ES_DRIVER(cuCtxPopCurrent_v2)(&ignored);
    }
    return result;
}

CUevent es_marker_record(int index, bool foreign)
{
    struct es_quiet quiet;
    CUcontext handle;
    CUstream stream;
    CUevent event = NULL;
    bool alive;
    int context;

    es_lock_take(&es_gate.lock);
    context = es_stream_context(index);
    stream = es_stream_handle(index);
    handle = contexts[context].handle;
    alive = es_context_alive(context) && es_stream_hold(index) && es_context_hold(context);
    es_lock_give(&es_gate.lock);
    if (!alive)
        return NULL;
    if (foreign && stream == CU_STREAM_PER_THREAD)
        stream = CU_STREAM_LEGACY;
    quiet = es_quiet_begin();
    if (!es_stream_capturing(stream))
        event = take_event(context);
    if (event != NULL && record(event, stream, handle) != CUDA_SUCCESS) {
        es_lock_take(&es_gate.lock);
        es_marker_give(context, event);
        es_lock_give(&es_gate.lock);
        event = NULL;
    }
    es_quiet_end(quiet);
    es_lock_take(&es_gate.lock);
    es_context_drop(context);
    es_stream_drop(index);
    es_lock_give(&es_gate.lock);
    return event;
}

void es_marker_give(int context, CUevent event)
{
    /* A full pool lets the event go to waste until the context ends: destroying it would need the driver. */
    if (event != NULL && contexts[context].handle != NULL && contexts[context].pooled < ES_POOL)
        contexts[context].pool[contexts[context].pooled++] = event;
}

void es_context_enter(int index)
{
    if (es_context_current() != contexts[index].handle)
        (void)ES_DRIVER(cuCtxSetCurrent)(contexts[index].handle);
}

bool es_context_alive(int index)
{
    return contexts[index].handle != NULL && !contexts[index].ending;
}

bool es_context_hold(int index)
{
    if (!es_context_alive(index))
        return false;
    contexts[index].users++;
    return true;
}

void es_context_drop(int index)
{
    contexts[index].users--;
}

void es_context_end(CUcontext handle)
{
    const uint64_t give_up_ns = es_now_ns() + 1000 * ES_MS;
    int index = -1;
    uint32_t users;

    es_lock_take(&es_gate.lock);
    for (int i = 0; i < ES_CONTEXTS && index < 0; i++) {
        if (contexts[i].handle == handle && handle != NULL && !contexts[i].ending)
            index = i;
    }
    if (index >= 0) {
        contexts[index].ending = true;
        es_streams_forget(index);
        es_batches_forget(index);
        es_gate_forget_all();
    }
    es_lock_give(&es_gate.lock);
    if (index < 0)
        return;
    do {
        const uint32_t seen = __atomic_load_n(&es_gate.progress, __ATOMIC_ACQUIRE);

        es_lock_take(&es_gate.lock);
        users = contexts[index].users;
        /* The events go with the context. A place that somebody still uses is never used again. */
        if (users == 0)
            contexts[index] = (struct context){.handle = NULL};
        es_lock_give(&es_gate.lock);
        if (users != 0)
            es_sleep_on(&es_gate.progress, seen, ES_MS);
    } while (users != 0 && es_now_ns() < give_up_ns);
}

void es_contexts_reset(void)
{
    memset(contexts, 0, sizeof(contexts));
    context_count = 0;
}
