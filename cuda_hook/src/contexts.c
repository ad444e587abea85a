#include "contexts.h"

#include <string.h>

#include "batches.h"
#include "gate.h"
#include "log.h"
#include "slots.h"
#include "symbols.h"

struct context {
    CUcontext handle; /* NULL: a free place */
    bool ending;
    uint32_t users;
    uint32_t pooled;
    CUevent pool[ES_POOL];
};

struct stream {
    CUstream handle; /* never NULL; 0 in `used` marks a free place */
    int context;
};

static struct context contexts[ES_CONTEXTS];
static uint32_t context_count; /* ever, of this process: an upper bound of those alive */
static struct stream streams[ES_STREAMS];
static uint64_t streams_used;
static bool many_said;

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

static CUstream normal(CUstream stream)
{
    return stream == NULL ? CU_STREAM_LEGACY : stream;
}

static bool is_default(CUstream stream)
{
    return stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

static CUcontext current(void)
{
    CUcontext context = NULL;

    return ES_DRIVER(cuCtxGetCurrent) != NULL && ES_DRIVER(cuCtxGetCurrent)(&context) == CUDA_SUCCESS ? context : NULL;
}

/* Also the answer for a legacy stream that may not be touched because another stream of its context captures: the
 * driver then gives an error. */
static bool capturing(CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    if (ES_DRIVER(cuStreamIsCapturing) == NULL)
        return false;
    return ES_DRIVER(cuStreamIsCapturing)(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* With the lock held. */
static int context_index(CUcontext handle)
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

/* With the lock held: the set of streams that some open batch touched, whose places cannot be reused. */
static uint64_t streams_touched(void)
{
    uint64_t touched = 0;

    for (size_t i = 0; i < es_slots_used(); i++)
        touched |= es_slot_at(i)->batch.streams;
    return touched;
}

static int find_stream(CUstream handle, CUcontext context)
{
    for (int i = 0; i < ES_STREAMS; i++) {
        if ((streams_used >> i & 1) != 0 && streams[i].handle == handle &&
            (!is_default(handle) || contexts[streams[i].context].handle == context))
            return i;
    }
    return -1;
}

/* With the lock held: a place for a stream that is not noted yet; -1 when all are in use. */
static int note_stream(CUstream handle, CUcontext context)
{
    uint64_t free_places = ~streams_used;
    int owner, index;

    if (free_places == 0)
        free_places = ~streams_touched();
    if (free_places == 0)
        return -1;
    owner = context_index(context);
    if (owner < 0)
        return -1;
    index = __builtin_ctzll(free_places);
    streams[index] = (struct stream){handle, owner};
    streams_used |= UINT64_C(1) << index;
    return index;
}

/* A green context's stream has none that the older form of the question could answer with. */
static bool context_of(CUstream stream, CUcontext *context)
{
    CUgreenCtx green;

    return (ES_DRIVER(cuStreamGetCtx) != NULL && ES_DRIVER(cuStreamGetCtx)(stream, context) == CUDA_SUCCESS) ||
           (ES_DRIVER(cuStreamGetCtx_v2) != NULL && ES_DRIVER(cuStreamGetCtx_v2)(stream, context, &green) == CUDA_SUCCESS);
}

int es_stream_index(CUstream stream)
{
    const CUstream handle = normal(stream);
    CUcontext context = is_default(handle) ? current() : NULL;
    int index;

    if (capturing(handle))
        return ES_STREAM_NONE;
    es_lock_take(&es_gate.lock);
    index = find_stream(handle, context);
    es_lock_give(&es_gate.lock);
    if (index >= 0)
        return index;
    if (!is_default(handle) && !context_of(handle, &context))
        context = current();
    if (context == NULL)
        return ES_STREAM_NONE;
    for (int tries = 0; index < 0 && tries < 3; tries++) {
        es_lock_take(&es_gate.lock);
        index = find_stream(handle, context);
        if (index < 0)
            index = note_stream(handle, context);
        es_lock_give(&es_gate.lock);
        /* All are touched: this thread's are free once they are marked, and then those of all others. */
        if (index < 0 && tries == 0 && es_slot_self != NULL)
            es_batch_close(es_slot_self, false);
        else if (index < 0 && tries == 1 && es_gate_pause()) {
            (void)es_batches_close_all();
            es_gate_resume();
        }
    }
    if (index >= 0)
        return index;
    if (!__atomic_exchange_n(&many_said, true, __ATOMIC_RELAXED))
        es_log("more streams (%d) or contexts (%d) are busy at once than are told apart: some launches are not counted",
               ES_STREAMS, ES_CONTEXTS);
    return ES_STREAM_MANY;
}

int es_stream_context(int index)
{
    return streams[index].context;
}

CUstream es_stream_handle(int index)
{
    return streams[index].handle;
}

uint64_t es_streams_of(CUcontext wanted)
{
    const CUcontext context = wanted != NULL ? wanted : current();
    uint64_t set = 0;

    es_lock_take(&es_gate.lock);
    for (int i = 0; i < ES_STREAMS; i++) {
        if ((streams_used >> i & 1) != 0 && contexts[streams[i].context].handle == context)
            set |= UINT64_C(1) << i;
    }
    es_lock_give(&es_gate.lock);
    return set;
}

uint64_t es_streams_like(CUstream stream)
{
    const CUstream handle = normal(stream);
    const CUcontext context = is_default(handle) ? current() : NULL;
    int index;

    es_lock_take(&es_gate.lock);
    index = find_stream(handle, context);
    es_lock_give(&es_gate.lock);
    return index < 0 ? 0 : UINT64_C(1) << index;
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
    pushed = current() != handle;
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

    if (!is_default(stream) || current() == context)
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
    context = streams[index].context;
    stream = streams[index].handle;
    handle = contexts[context].handle;
    alive = es_context_hold(context);
    es_lock_give(&es_gate.lock);
    if (!alive)
        return NULL;
    if (foreign && stream == CU_STREAM_PER_THREAD)
        stream = CU_STREAM_LEGACY;
    quiet = es_quiet_begin();
    if (!capturing(stream))
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
    if (current() != contexts[index].handle)
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
        for (int i = 0; i < ES_STREAMS; i++) {
            if (streams[i].context == index)
                streams_used &= ~(UINT64_C(1) << i);
        }
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

void es_stream_end(CUstream stream)
{
    const CUstream handle = normal(stream);
    int index;

    es_lock_take(&es_gate.lock);
    index = find_stream(handle, NULL);
    if (index >= 0) {
        streams_used &= ~(UINT64_C(1) << index);
        es_gate_forget_all();
    }
    es_lock_give(&es_gate.lock);
}

void es_contexts_reset(void)
{
    memset(contexts, 0, sizeof(contexts));
    context_count = 0;
    streams_used = 0;
}
