#include "api/sync.h"

#include <errno.h>

#include "api/wrappers.h"
#include "backlog/submitted.h"
#include "base/life.h"
#include "base/state.h"
#include "core/tools/clock.h"
#include "driver/contexts.h"
#include "driver/streams.h"
#include "driver/symbols.h"
#include "link/link.h"
#include "markers/batches.h"
#include "markers/waits.h"
#include "memory/pools.h"
#include "pass/helper.h"
#include "threads/slots.h"
#include "usage/measured.h"
#include "usage/thinks.h"

/* The program waits for the device. Before: if the burst is one to be timed, its end is marked. After: what was waited
 * for is done, which costs nothing to know. */

/* The thread's slot. In a forked child that has not joined there is none: its locks are the parent's, maybe taken. */
static struct es_slot *slot_here(void) { return es_slot_self != NULL && !es_life_apart() ? es_slot_self : NULL; }

static bool contended(const struct es_slot *slot) {
    return (__atomic_load_n(&slot->word, __ATOMIC_RELAXED) & ES_GATE_CONTENDED) != 0;
}

/* A client that usually thinks for longer than it may keep its turn: the device is to go on as soon as this is done. */
static bool leaves_after(const struct es_slot *slot) {
    return contended(slot) && !es_link_keeps() && __atomic_load_n(&es_thinks.usual_ns, __ATOMIC_RELAXED) > es_thinks_most_ns();
}

static void waiting(void) {
    struct es_slot *slot = slot_here();
    bool mark;

    if (slot == NULL)
        return;
    es_lock_take(&es_state_lock);
    mark = slot->launches != slot->batch.settled &&
           (slot->batch.start != NULL || leaves_after(slot) || es_submitted_in(slot) > ES_MS || es_measured.doubted > 0);
    if (mark && es_measured.doubted > 0)
        es_measured.doubted--;
    es_lock_give(&es_state_lock);
    if (mark)
        es_batch_close(slot, false);
    if (mark && leaves_after(slot))
        es_helper_call(0);
}

static void waited(uint64_t streams) {
    const int error = errno;
    struct es_slot *slot = slot_here();

    if (slot == NULL)
        return;
    es_waits_returned(slot, streams);
    if (leaves_after(slot))
        es_helper_call(0);
    errno = error;
}

void es_sync_done(CUstream stream) {
    es_pools_waited();
    if (slot_here() != NULL)
        waited(es_streams_like(stream));
}

/* Is a stream done with all that it has? Not where nobody can ask: a capture would not survive it. */
static bool stream_is_done(int stream) {
    struct es_entered entered;
    struct es_quiet quiet;
    struct es_use use;
    bool done;

    /* Another thread may have ended it, or be about to. */
    if (ES_DRIVER(cuStreamQuery) == NULL || !es_stream_use(stream, &use))
        return false;
    entered = es_context_enter(use.owner);
    quiet = es_quiet_begin();
    done = entered.current && !es_stream_capturing(use.handle) && ES_DRIVER(cuStreamQuery)(use.handle) == CUDA_SUCCESS;
    es_quiet_end(quiet);
    es_context_leave(entered);
    es_stream_used(&use);
    return done;
}

/* An event says that part of a stream is done; the stream itself is asked whether that was all. What was marked before tells
 * its time at once: seen later, its end would be taken for later. */
static void waited_for_event(void) {
    const int error = errno;
    struct es_slot *slot = slot_here();
    uint64_t streams;

    if (slot == NULL)
        return;
    es_lock_take(&es_state_lock);
    streams = slot->launches != slot->batch.settled ? slot->batch.streams : 0;
    es_lock_give(&es_state_lock);
    if (streams != 0 && (streams & (streams - 1)) == 0 && stream_is_done(__builtin_ctzll(streams)))
        waited(streams);
    else
        es_waits_look(0);
    errno = error;
}

#define WAIT_FOR_STREAM(name, where)       \
    CUresult es_##name(CUstream hStream) { \
        CUresult result;                   \
                                           \
        ES_REAL_OR_RETURN(name);           \
        waiting();                         \
        result = ES_DRIVER(name)(hStream); \
        if (result == CUDA_SUCCESS)        \
            es_sync_done(where);           \
        return result;                     \
    }                                      \
    ES_EXPORT(name)

/* A query that says "not ready" is asked again soon: nothing is marked for it. */
#define QUERY_STREAM(name, where)          \
    CUresult es_##name(CUstream hStream) { \
        CUresult result;                   \
                                           \
        ES_REAL_OR_RETURN(name);           \
        result = ES_DRIVER(name)(hStream); \
        if (result == CUDA_SUCCESS)        \
            es_sync_done(where);           \
        return result;                     \
    }                                      \
    ES_EXPORT(name)

WAIT_FOR_STREAM(cuStreamSynchronize, hStream);
WAIT_FOR_STREAM(cuStreamSynchronize_ptsz, hStream == NULL ? CU_STREAM_PER_THREAD : hStream);
QUERY_STREAM(cuStreamQuery, hStream);
QUERY_STREAM(cuStreamQuery_ptsz, hStream == NULL ? CU_STREAM_PER_THREAD : hStream);

CUresult es_cuCtxSynchronize(void) {
    CUresult result;

    ES_REAL_OR_RETURN(cuCtxSynchronize);
    waiting();
    result = ES_DRIVER(cuCtxSynchronize)();
    if (result == CUDA_SUCCESS)
        es_pools_waited();
    if (result == CUDA_SUCCESS && slot_here() != NULL)
        waited(es_streams_of(NULL));
    return result;
}
ES_EXPORT(cuCtxSynchronize);

CUresult es_cuCtxSynchronize_v2(CUcontext ctx) {
    CUresult result;

    ES_REAL_OR_RETURN(cuCtxSynchronize_v2);
    waiting();
    result = ES_DRIVER(cuCtxSynchronize_v2)(ctx);
    if (result == CUDA_SUCCESS)
        es_pools_waited();
    if (result == CUDA_SUCCESS && slot_here() != NULL)
        waited(es_streams_of(ctx));
    return result;
}
ES_EXPORT(cuCtxSynchronize_v2);

CUresult es_cuEventSynchronize(CUevent hEvent) {
    CUresult result;

    ES_REAL_OR_RETURN(cuEventSynchronize);
    waiting();
    result = ES_DRIVER(cuEventSynchronize)(hEvent);
    if (result == CUDA_SUCCESS) {
        es_pools_waited();
        waited_for_event();
    }
    return result;
}
ES_EXPORT(cuEventSynchronize);

CUresult es_cuEventQuery(CUevent hEvent) {
    CUresult result;

    ES_REAL_OR_RETURN(cuEventQuery);
    result = ES_DRIVER(cuEventQuery)(hEvent);
    if (result == CUDA_SUCCESS)
        waited_for_event();
    return result;
}
ES_EXPORT(cuEventQuery);
