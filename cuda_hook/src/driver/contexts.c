#include "driver/contexts.h"

#include <limits.h>
#include <string.h>

#include "base/events.h"
#include "base/state.h"
#include "core/tools/clock.h"
#include "driver/symbols.h"
#include "threads/slots.h"

enum { NUMBERS = INT_MAX / ES_CONTEXTS };

struct context {
    CUcontext handle; /* NULL: a free place */
    int number;       /* leaves its place when divided by ES_CONTEXTS */
    bool ending;
    uint32_t users;
    bool awaited; /* the hook's own thread waits in it for work */
};

static struct context contexts[ES_CONTEXTS] ES_UNDER(es_state_lock);
static uint32_t context_count;                /* of those that do not end */
static uint32_t made ES_UNDER(es_state_lock); /* ever */

struct es_quiet es_quiet_begin(void) {
    struct es_quiet quiet = {.mode = CU_STREAM_CAPTURE_MODE_RELAXED};

    quiet.exchanged = ES_DRIVER(cuThreadExchangeStreamCaptureMode) != NULL &&
                      ES_DRIVER(cuThreadExchangeStreamCaptureMode)(&quiet.mode) == CUDA_SUCCESS;
    return quiet;
}

void es_quiet_end(struct es_quiet quiet) {
    if (quiet.exchanged)
        (void)ES_DRIVER(cuThreadExchangeStreamCaptureMode)(&quiet.mode);
}

CUcontext es_context_current(void) {
    CUcontext context = NULL;

    return ES_DRIVER(cuCtxGetCurrent) != NULL && ES_DRIVER(cuCtxGetCurrent)(&context) == CUDA_SUCCESS ? context : NULL;
}

/* NULL where it has ended and nobody uses it. */
ES_LOCKED(es_state_lock) static struct context *numbered(int number) {
    struct context *context = number < 0 ? NULL : &contexts[number % ES_CONTEXTS];

    return context != NULL && context->handle != NULL && context->number == number ? context : NULL;
}

ES_LOCKED(es_state_lock) static struct context *living(int number) {
    struct context *context = numbered(number);

    return context != NULL && !context->ending ? context : NULL;
}

int es_context_note(CUcontext handle) {
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
        es_slots_forget_words();
    return contexts[place].number;
}

CUcontext es_context_handle(int number) {
    const struct context *context = living(number);

    return context == NULL ? NULL : context->handle;
}

bool es_contexts_many(void) { return __atomic_load_n(&context_count, __ATOMIC_RELAXED) > 1; }

struct es_entered es_context_enter(CUcontext context) {
    struct es_entered entered = {.current = true};

    if (es_context_current() != context)
        entered.current = entered.pushed = ES_DRIVER(cuCtxPushCurrent_v2)(context) == CUDA_SUCCESS;
    return entered;
}

void es_context_leave(struct es_entered entered) {
    CUcontext ignored;

    if (entered.pushed)
        (void)ES_DRIVER(cuCtxPopCurrent_v2)(&ignored);
}

bool es_context_hold(int number) {
    struct context *context = living(number);

    if (context != NULL)
        context->users++;
    return context != NULL;
}

void es_context_await(int number, bool awaited) {
    struct context *context = numbered(number);

    if (context != NULL)
        context->awaited = awaited;
}

/* The events go with the context. */
ES_LOCKED(es_state_lock) static void leave_place(struct context *context) {
    if (context->ending && context->users == 0)
        *context = (struct context){.handle = NULL};
}

void es_context_drop(int number) {
    struct context *context = numbered(number);

    context->users--;
    leave_place(context);
}

/* The number of a context that nobody may begin to use from here on; -1: it was not noted. */
ES_LOCKED(es_state_lock) static int begin_end(CUcontext handle) {
    for (int i = 0; i < ES_CONTEXTS; i++) {
        const int number = contexts[i].number;

        if (handle == NULL || contexts[i].handle != handle || contexts[i].ending)
            continue;
        contexts[i].ending = true;
        __atomic_store_n(&context_count, context_count - 1, __ATOMIC_RELAXED);
        es_on_context_ended(number);
        leave_place(&contexts[i]);
        return number;
    }
    return -1;
}

void es_context_end(CUcontext handle) {
    const uint64_t give_up_ns = es_now_ns() + 1000 * ES_MS;
    bool used;
    int number;

    es_lock_take(&es_state_lock);
    number = begin_end(handle);
    used = numbered(number) != NULL;
    es_lock_give(&es_state_lock);
    while (used) {
        const uint32_t seen = es_progress_seen();

        es_progress_wait(seen, ES_MS);
        es_lock_take(&es_state_lock);
        used = numbered(number) != NULL && (numbered(number)->awaited || es_now_ns() < give_up_ns);
        es_lock_give(&es_state_lock);
    }
}

ES_UNCHECKED void es_contexts_reset(void) {
    memset(contexts, 0, sizeof(contexts));
    context_count = made = 0;
}
