#include "driver/contexts.h"

#include <limits.h>
#include <string.h>

#include "driver/symbols.h"
#include "markers/batches.h"
#include "markers/collect.h"
#include "pass/gate.h"

enum { NUMBERS = INT_MAX / ES_CONTEXTS };

struct context {
    CUcontext handle; /* NULL: a free place */
    int number;       /* leaves its place when divided by ES_CONTEXTS */
    bool ending;
    uint32_t users;
    uint32_t pooled;
};

static struct context contexts[ES_CONTEXTS];
static CUevent pools[ES_CONTEXTS][ES_POOL]; /* apart: untouched, so without memory, but for what was ever pooled */
static uint32_t context_count; /* of those that do not end */
static uint32_t made;          /* ever */

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

/* With the lock held: NULL where it has ended and nobody uses it. */
static struct context *numbered(int number)
{
    struct context *context = number < 0 ? NULL : &contexts[number % ES_CONTEXTS];

    return context != NULL && context->handle != NULL && context->number == number ? context : NULL;
}

static struct context *living(int number)
{
    struct context *context = numbered(number);

    return context != NULL && !context->ending ? context : NULL;
}

int es_context_note(CUcontext handle)
{
    int place = -1;

    for (int i = 0; i < ES_CONTEXTS; i++) {
        if (contexts[i].handle == handle && !contexts[i].ending)
            return contexts[i].number;
        if (contexts[i].handle == NULL && place < 0)
            place = i;
    }
    if (place < 0)
        return -1;
    contexts[place] = (struct context){.handle = handle, .number = place + (int)(made++ % NUMBERS) * ES_CONTEXTS};
    __atomic_store_n(&context_count, context_count + 1, __ATOMIC_RELAXED);
    /* What threads remember about default streams was of the one context so far. */
    if (context_count > 1)
        es_gate_forget_all();
    return contexts[place].number;
}

CUcontext es_context_handle(int number)
{
    const struct context *context = living(number);

    return context == NULL ? NULL : context->handle;
}

bool es_contexts_many(void)
{
    return __atomic_load_n(&context_count, __ATOMIC_RELAXED) > 1;
}

struct es_entered es_context_enter(CUcontext context)
{
    struct es_entered entered = {.current = true};

    if (es_context_current() != context)
        entered.current = entered.pushed = ES_DRIVER(cuCtxPushCurrent_v2)(context) == CUDA_SUCCESS;
    return entered;
}

void es_context_leave(struct es_entered entered)
{
    CUcontext ignored;

    if (entered.pushed)
        (void)ES_DRIVER(cuCtxPopCurrent_v2)(&ignored);
}

/* A marker from the pool of a context that is held and current, or a new one; NULL when the driver gives none. */
static CUevent take_event(const struct es_use *use)
{
    struct context *context;
    CUevent event = NULL;

    es_lock_take(&es_gate.lock);
    context = numbered(use->context);
    if (context->pooled > 0)
        event = pools[use->context % ES_CONTEXTS][--context->pooled];
    es_lock_give(&es_gate.lock);
    if (event != NULL)
        return event;
    return ES_DRIVER(cuEventCreate)(&event, CU_EVENT_BLOCKING_SYNC) == CUDA_SUCCESS ? event : NULL;
}

struct es_marker es_marker_record(int index, bool foreign)
{
    struct es_marker marker = {NULL, -1};
    struct es_entered entered;
    struct es_quiet quiet;
    struct es_use use;

    if (!es_stream_use(index, &use))
        return marker;
    marker.context = use.context;
    if (foreign && use.handle == CU_STREAM_PER_THREAD)
        use.handle = CU_STREAM_LEGACY;
    entered = es_context_enter(use.owner);
    quiet = es_quiet_begin();
    if (entered.current && !es_stream_capturing(use.handle))
        marker.event = take_event(&use);
    if (marker.event != NULL && ES_DRIVER(cuEventRecord)(marker.event, use.handle) != CUDA_SUCCESS) {
        es_lock_take(&es_gate.lock);
        es_marker_give(marker.context, marker.event);
        es_lock_give(&es_gate.lock);
        marker.event = NULL;
    }
    es_quiet_end(quiet);
    es_context_leave(entered);
    es_stream_used(&use);
    return marker;
}

void es_marker_give(int number, CUevent event)
{
    struct context *context = living(number);

    /* There is room for all that can be in use at once, but for starts that more threads record than are ever seen:
     * such an event goes to waste until the context ends, as destroying it would need the driver. */
    if (event != NULL && context != NULL && context->pooled < ES_POOL)
        pools[number % ES_CONTEXTS][context->pooled++] = event;
}

bool es_context_hold(int number)
{
    struct context *context = living(number);

    if (context != NULL)
        context->users++;
    return context != NULL;
}

/* With the lock held: the events go with the context. */
static void leave_place(struct context *context)
{
    if (context->ending && context->users == 0)
        *context = (struct context){.handle = NULL};
}

void es_context_drop(int number)
{
    struct context *context = numbered(number);

    context->users--;
    leave_place(context);
}

/* With the lock held: the number of a context that nobody may begin to use from here on; -1: it was not noted. */
static int begin_end(CUcontext handle)
{
    for (int i = 0; i < ES_CONTEXTS; i++) {
        const int number = contexts[i].number;

        if (handle == NULL || contexts[i].handle != handle || contexts[i].ending)
            continue;
        contexts[i].ending = true;
        __atomic_store_n(&context_count, context_count - 1, __ATOMIC_RELAXED);
        es_streams_forget(number);
        es_batches_forget(number);
        es_gate_forget_all();
        leave_place(&contexts[i]);
        return number;
    }
    return -1;
}

void es_context_end(CUcontext handle)
{
    const uint64_t give_up_ns = es_now_ns() + 1000 * ES_MS;
    bool used;
    int number;

    es_lock_take(&es_gate.lock);
    number = begin_end(handle);
    used = numbered(number) != NULL;
    es_lock_give(&es_gate.lock);
    while (used) {
        const uint32_t seen = __atomic_load_n(&es_gate.progress, __ATOMIC_ACQUIRE);

        es_sleep_on(&es_gate.progress, seen, ES_MS);
        es_lock_take(&es_gate.lock);
        used = numbered(number) != NULL && (es_collect_awaits(number) || es_now_ns() < give_up_ns);
        es_lock_give(&es_gate.lock);
    }
}

void es_contexts_reset(void)
{
    memset(contexts, 0, sizeof(contexts));
    context_count = made = 0;
}
