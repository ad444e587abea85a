#include "streams.h"

#include <string.h>

#include "batches.h"
#include "closed.h"
#include "collect.h"
#include "contexts.h"
#include "gate.h"
#include "log.h"
#include "slots.h"
#include "symbols.h"

struct stream {
    CUstream handle; /* never NULL; 0 in `used` marks a free place */
    int context;
};

/* Under the gate's lock. */
static struct stream streams[ES_STREAMS];
static uint64_t streams_used;
static uint32_t stream_users[ES_STREAMS]; /* who is inside the driver on behalf of a stream */

enum { STREAM_END_TRIES = 1000 }; /* of a millisecond each, or less */

static bool many_said;

static CUstream normal(CUstream stream)
{
    return stream == NULL ? CU_STREAM_LEGACY : stream;
}

bool es_stream_capturing(CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    if (ES_DRIVER(cuStreamIsCapturing) == NULL)
        return false;
    return ES_DRIVER(cuStreamIsCapturing)(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
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
            (!es_stream_is_default(handle) || es_context_handle(streams[i].context) == context))
            return i;
    }
    return -1;
}

/* With the lock held: a place for a stream that is not noted yet, or why there is none. */
static int note_stream(CUstream handle, CUcontext context)
{
    uint64_t free_places = ~streams_used;
    int owner, index;

    if (free_places == 0)
        free_places = ~streams_touched();
    if (free_places == 0)
        return ES_STREAM_LATER;
    owner = es_context_note(context);
    if (owner < 0)
        return ES_STREAM_MANY;
    index = __builtin_ctzll(free_places);
    es_collect_leave_stream(index);
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
    CUcontext context = es_stream_is_default(handle) ? es_context_current() : NULL;
    bool full;
    int index;

    if (es_stream_capturing(handle))
        return ES_STREAM_NONE;
    es_lock_take(&es_gate.lock);
    index = find_stream(handle, context);
    es_lock_give(&es_gate.lock);
    if (index >= 0)
        return index;
    if (!es_stream_is_default(handle) && !context_of(handle, &context))
        context = es_context_current();
    if (context == NULL)
        return ES_STREAM_NONE;
    for (int tries = 0; tries < 3; tries++) {
        es_lock_take(&es_gate.lock);
        index = find_stream(handle, context);
        if (index < 0)
            index = note_stream(handle, context);
        full = es_closed_full(); /* no more can be marked */
        es_lock_give(&es_gate.lock);
        if (index != ES_STREAM_LATER || full)
            break;
        /* All are touched: this thread's are free once they are marked, and then those of all others. */
        if (tries == 0 && es_slot_self != NULL) {
            es_batch_close(es_slot_self, false);
        } else if (tries == 1 && es_gate_pause()) {
            (void)es_batches_close_all();
            es_gate_resume();
        }
    }
    if (index == ES_STREAM_MANY && !__atomic_exchange_n(&many_said, true, __ATOMIC_RELAXED))
        es_log("more contexts (%d) are there than are told apart: some launches are not counted", ES_CONTEXTS);
    return index;
}

int es_stream_context(int index)
{
    return streams[index].context;
}

CUstream es_stream_handle(int index)
{
    return streams[index].handle;
}

bool es_streams_many(void)
{
    return (streams_used & (streams_used - 1)) != 0;
}

uint64_t es_streams_of(CUcontext wanted)
{
    const CUcontext context = wanted != NULL ? wanted : es_context_current();
    uint64_t set = 0;

    es_lock_take(&es_gate.lock);
    for (int i = 0; i < ES_STREAMS; i++) {
        if ((streams_used >> i & 1) != 0 && es_context_handle(streams[i].context) == context)
            set |= UINT64_C(1) << i;
    }
    es_lock_give(&es_gate.lock);
    return set;
}

uint64_t es_streams_like(CUstream stream)
{
    const CUstream handle = normal(stream);
    const CUcontext context = es_stream_is_default(handle) ? es_context_current() : NULL;
    int index;

    es_lock_take(&es_gate.lock);
    index = find_stream(handle, context);
    es_lock_give(&es_gate.lock);
    return index < 0 ? 0 : UINT64_C(1) << index;
}

bool es_stream_hold(int index)
{
    if ((streams_used >> index & 1) == 0)
        return false;
    stream_users[index]++;
    return true;
}

void es_stream_drop(int index)
{
    stream_users[index]--;
}

void es_stream_end(CUstream stream)
{
    const CUstream handle = normal(stream);
    uint32_t users = 0;
    int index;

    es_lock_take(&es_gate.lock);
    index = find_stream(handle, NULL);
    if (index >= 0) {
        streams_used &= ~(UINT64_C(1) << index);
        users = stream_users[index];
        es_gate_forget_all();
    }
    es_lock_give(&es_gate.lock);
    /* Another thread may be recording a marker in it, which a stream that is gone does not survive. */
    for (int tries = 0; users != 0 && tries < STREAM_END_TRIES; tries++) {
        es_sleep_on(&es_gate.progress, __atomic_load_n(&es_gate.progress, __ATOMIC_ACQUIRE), ES_MS);
        es_lock_take(&es_gate.lock);
        users = stream_users[index];
        es_lock_give(&es_gate.lock);
    }
}

void es_streams_forget(int context)
{
    for (int i = 0; i < ES_STREAMS; i++) {
        if (streams[i].context == context)
            streams_used &= ~(UINT64_C(1) << i);
    }
}

void es_streams_reset(void)
{
    streams_used = 0;
    memset(stream_users, 0, sizeof(stream_users));
}
