#include "driver/streams.h"

#include <limits.h>
#include <string.h>

#include "base/events.h"
#include "base/log.h"
#include "base/state.h"
#include "core/tools/clock.h"
#include "driver/contexts.h"
#include "driver/symbols.h"
#include "threads/slots.h"

enum { NUMBERS = INT_MAX / ES_STREAMS };

struct stream {
    CUstream handle; /* never NULL; 0 in `used` marks a free place */
    int context;
    int number; /* leaves its place when divided by ES_STREAMS */
};

static struct stream streams[ES_STREAMS] ES_UNDER(es_state_lock);
static uint64_t streams_used ES_UNDER(es_state_lock);
static uint32_t noted ES_UNDER(es_state_lock);                    /* ever */
static uint32_t stream_users[ES_STREAMS] ES_UNDER(es_state_lock); /* who is inside the driver on behalf of a stream */
static uint32_t captures ES_UNDER(es_state_lock);                 /* that threads of the program are beginning */
static uint32_t lasting; /* captures that were begun and not seen to end; changed under es_state_lock, read without it */

enum { PATIENCE_NS = 1000 * 1000 * 1000 }; /* with who is inside the driver */

static bool many_said;

static CUstream normal(CUstream stream) { return stream == NULL ? CU_STREAM_LEGACY : stream; }

bool es_stream_capturing(CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    if (ES_DRIVER(cuStreamIsCapturing) == NULL)
        return false;
    return ES_DRIVER(cuStreamIsCapturing)(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* The set of streams that some open batch touched, whose places cannot be reused. */
ES_LOCKED(es_state_lock) static uint64_t streams_touched(void) {
    uint64_t touched = 0;

    for (size_t i = 0; i < es_slots_used(); i++)
        touched |= es_slot_at(i)->batch.streams;
    return touched;
}

ES_LOCKED(es_state_lock) static int find_stream(CUstream handle, CUcontext context) {
    for (int i = 0; i < ES_STREAMS; i++) {
        if ((streams_used >> i & 1) != 0 && streams[i].handle == handle &&
            (!es_stream_is_default(handle) || es_context_handle(streams[i].context) == context))
            return i;
    }
    return -1;
}

/* The number of a stream that is not noted yet, or why there is no place for it. */
ES_LOCKED(es_state_lock) static int note_stream(CUstream handle, CUcontext context) {
    const uint64_t touched = streams_touched();
    uint64_t free_places = ~(streams_used | touched);
    int owner, index, first = 0;

    /* What ended has its place while an open batch touched it, or it would be taken for what comes after it. Each in its turn:
     * who was given one last is on its way to touch it. */
    if (free_places == 0) {
        free_places = ~touched;
        first = (int)(noted % ES_STREAMS);
    }
    if (free_places == 0)
        return ES_STREAM_LATER;
    owner = es_context_note(context);
    if (owner < 0)
        return ES_STREAM_MANY;
    index = first + __builtin_ctzll(free_places >> first | free_places << (-first & (ES_STREAMS - 1)));
    index %= ES_STREAMS;
    es_on_place_left(index);
    streams[index] = (struct stream){handle, owner, index + (int)(noted++ % NUMBERS) * ES_STREAMS};
    streams_used |= UINT64_C(1) << index;
    return streams[index].number;
}

/* A green context's stream has none that the older form of the question could answer with. */
static bool context_of(CUstream stream, CUcontext *context) {
    CUgreenCtx green;

    return (ES_DRIVER(cuStreamGetCtx) != NULL && ES_DRIVER(cuStreamGetCtx)(stream, context) == CUDA_SUCCESS) ||
           (ES_DRIVER(cuStreamGetCtx_v2) != NULL && ES_DRIVER(cuStreamGetCtx_v2)(stream, context, &green) == CUDA_SUCCESS);
}

int es_stream_number(CUstream stream) {
    const CUstream handle = normal(stream);
    const CUcontext current = es_context_current();
    CUcontext context = es_stream_is_default(handle) ? current : NULL;
    int index, number;

    /* Without a context the driver refuses what the program is about to do. */
    if (current == NULL || es_stream_capturing(handle))
        return ES_STREAM_NONE;
    es_lock_take(&es_state_lock);
    index = find_stream(handle, context);
    number = index < 0 ? ES_STREAM_NONE : streams[index].number;
    es_lock_give(&es_state_lock);
    if (number >= 0)
        return number;
    if (!es_stream_is_default(handle) && !context_of(handle, &context))
        context = current;
    es_lock_take(&es_state_lock);
    index = find_stream(handle, context);
    number = index < 0 ? note_stream(handle, context) : streams[index].number;
    es_lock_give(&es_state_lock);
    if (number == ES_STREAM_MANY && !__atomic_exchange_n(&many_said, true, __ATOMIC_RELAXED))
        es_log("more contexts (%d) are there than are told apart: some launches are not counted", ES_CONTEXTS);
    return number;
}

int es_stream_index(int number) {
    const int index = number % ES_STREAMS;

    return (streams_used >> index & 1) != 0 && streams[index].number == number ? index : -1;
}

uint32_t es_streams_count(void) { return (uint32_t)__builtin_popcountll(streams_used); }

bool es_streams_many(void) { return (streams_used & (streams_used - 1)) != 0; }

uint64_t es_streams_of(CUcontext wanted) {
    const CUcontext context = wanted != NULL ? wanted : es_context_current();
    uint64_t set = 0;

    es_lock_take(&es_state_lock);
    for (int i = 0; i < ES_STREAMS; i++) {
        if (context != NULL && (streams_used >> i & 1) != 0 && es_context_handle(streams[i].context) == context)
            set |= UINT64_C(1) << i;
    }
    es_lock_give(&es_state_lock);
    return set;
}

uint64_t es_streams_like(CUstream stream) {
    const CUstream handle = normal(stream);
    const CUcontext context = es_stream_is_default(handle) ? es_context_current() : NULL;
    int index;

    es_lock_take(&es_state_lock);
    index = find_stream(handle, context);
    es_lock_give(&es_state_lock);
    return index < 0 ? 0 : UINT64_C(1) << index;
}

bool es_stream_use(int index, struct es_use *use) {
    bool alive;

    es_lock_take(&es_state_lock);
    /* As long as a call of the driver that begins one. */
    while (captures != 0) {
        es_lock_give(&es_state_lock);
        es_progress_wait(es_progress_seen(), ES_MS);
        es_lock_take(&es_state_lock);
    }
    *use = (struct es_use){index, streams[index].context, streams[index].handle, es_context_handle(streams[index].context)};
    alive = (streams_used >> index & 1) != 0 && es_context_hold(use->context);
    stream_users[index] += alive;
    es_lock_give(&es_state_lock);
    return alive;
}

void es_stream_used(const struct es_use *use) {
    es_lock_take(&es_state_lock);
    stream_users[use->stream]--;
    es_context_drop(use->context);
    es_lock_give(&es_state_lock);
}

ES_LOCKED(es_state_lock) static uint32_t users_of(uint64_t set) {
    uint32_t users = 0;

    for (uint64_t rest = set; rest != 0; rest &= rest - 1)
        users += stream_users[__builtin_ctzll(rest)];
    return users;
}

/* Which is given meanwhile: returns when nobody is inside the driver on behalf of any of these. */
ES_LOCKED(es_state_lock) static void wait_for_users(uint64_t set) {
    uint64_t give_up_ns;

    if (users_of(set) == 0)
        return;
    give_up_ns = es_now_ns() + PATIENCE_NS;
    while (users_of(set) != 0 && es_now_ns() < give_up_ns) {
        const uint32_t seen = es_progress_seen();

        es_lock_give(&es_state_lock);
        es_progress_wait(seen, ES_MS);
        es_lock_take(&es_state_lock);
    }
}

void es_stream_end(CUstream stream) {
    const CUstream handle = normal(stream);
    int index;

    es_lock_take(&es_state_lock);
    index = find_stream(handle, NULL);
    if (index >= 0) {
        streams_used &= ~(UINT64_C(1) << index);
        es_slots_forget_words();
        wait_for_users(UINT64_C(1) << index);
    }
    es_lock_give(&es_state_lock);
}

void es_capture_begin(void) {
    es_lock_take(&es_state_lock);
    captures++;
    /* What is recorded in it can be waited for as soon as the driver has begun it. */
    __atomic_store_n(&lasting, lasting + 1, __ATOMIC_RELAXED);
    wait_for_users(UINT64_MAX);
    es_lock_give(&es_state_lock);
}

void es_capture_begun(bool lasts) {
    es_lock_take(&es_state_lock);
    captures--;
    if (!lasts)
        __atomic_store_n(&lasting, lasting - 1, __ATOMIC_RELAXED);
    es_slots_forget_words();
    es_lock_give(&es_state_lock);
}

void es_capture_ended(void) {
    es_lock_take(&es_state_lock);
    if (lasting > captures)
        __atomic_store_n(&lasting, lasting - 1, __ATOMIC_RELAXED);
    es_lock_give(&es_state_lock);
}

bool es_captures_last(void) { return __atomic_load_n(&lasting, __ATOMIC_RELAXED) != 0; }

void es_streams_forget(int context) {
    for (int i = 0; i < ES_STREAMS; i++) {
        if (streams[i].context == context)
            streams_used &= ~(UINT64_C(1) << i);
    }
}

ES_UNCHECKED void es_streams_reset(void) {
    streams_used = noted = 0;
    memset(stream_users, 0, sizeof(stream_users));
    captures = lasting = 0;
}
