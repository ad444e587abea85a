#include "driver/markers.h"

#include <string.h>

#include "base/state.h"
#include "core/times/spent.h"
#include "driver/streams.h"
#include "driver/symbols.h"

/* Of the four that a stream has (closed.c) one stays for the end of a batch that has to end, which may be in all streams. */
enum { SPARE_A_STREAM = 3 };

/* Of the context that has this place; the number of another says that the events have ended with it. */
static struct pool {
    int number;
    uint32_t count; /* that are not in use */
    uint32_t made;
} pools[ES_CONTEXTS] ES_UNDER(es_state_lock);
static CUevent events[ES_CONTEXTS][ES_POOL]
    ES_UNDER(es_state_lock); /* apart: untouched, so without memory, but for what was ever pooled */

static CUevent awaited ES_UNDER(es_state_lock);   /* somebody sleeps on this marker, which must not be used anew meanwhile */
static int spent_context ES_UNDER(es_state_lock); /* … and it would have gone back to the pool of this context; -1: not yet */

ES_LOCKED(es_state_lock) static struct pool *pool_of(int number) {
    struct pool *pool = &pools[number % ES_CONTEXTS];

    if (pool->number != number)
        *pool = (struct pool){.number = number};
    return pool;
}

/* A marker from the pool of a context that is held and current, or a new one; NULL when the driver gives none. */
static CUevent take_event(const struct es_use *use) {
    CUevent event = NULL;
    struct pool *pool;

    es_lock_take(&es_state_lock);
    pool = pool_of(use->context);
    if (pool->count > 0)
        event = events[use->context % ES_CONTEXTS][--pool->count];
    es_lock_give(&es_state_lock);
    if (event != NULL)
        return event;
    if (ES_DRIVER(cuEventCreate)(&event, CU_EVENT_BLOCKING_SYNC) != CUDA_SUCCESS)
        return NULL;
    es_lock_take(&es_state_lock);
    pool_of(use->context)->made++;
    es_lock_give(&es_state_lock);
    return event;
}

struct es_marker es_marker_record(int index, bool foreign) {
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
        es_lock_take(&es_state_lock);
        es_marker_give(marker.context, marker.event);
        es_lock_give(&es_state_lock);
        marker.event = NULL;
    }
    es_quiet_end(quiet);
    es_context_leave(entered);
    es_stream_used(&use);
    return marker;
}

void es_marker_give(int context, CUevent event) {
    struct pool *pool;

    if (event == awaited && event != NULL) {
        spent_context = context;
        return;
    }
    /* There is room for all that can be in use at once, but for starts that more threads record than are ever seen:
     * such an event goes to waste until the context ends, as destroying it would need the driver. */
    if (event == NULL || context < 0 || es_context_handle(context) == NULL)
        return;
    pool = pool_of(context);
    if (pool->count < ES_POOL)
        events[context % ES_CONTEXTS][pool->count++] = event;
}

bool es_markers_left(uint32_t count) {
    uint32_t used = 0;

    for (size_t i = 0; i < ES_CONTEXTS; i++) {
        if (pools[i].made != 0 && es_context_handle(pools[i].number) != NULL)
            used += pools[i].made - pools[i].count;
    }
    return used + count <= SPARE_A_STREAM * es_streams_count();
}

/* Done, or by NVIDIA's description of the error nothing of the context or the process runs any more. Any other error says
 * nothing of the work: it is of the call, or of some capture. */
static bool is_over(CUresult answer) {
    switch ((int)answer) {
    case CUDA_SUCCESS:
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case CUDA_ERROR_EXTERNAL_DEVICE: return true;
    default: return false;
    }
}

enum es_reached es_marker_reached(CUevent event) {
    const CUresult answer = ES_DRIVER(cuEventQuery)(event);

    if (answer == CUDA_ERROR_NOT_READY)
        return ES_REACHED_NOT;
    if (answer == CUDA_ERROR_CAPTURED_EVENT)
        return ES_REACHED_NEVER;
    return is_over(answer) ? ES_REACHED : ES_REACHED_UNTOLD;
}

int64_t es_marker_elapsed_ns(CUevent from, CUevent to) {
    float ms = 0;

    if (from == NULL || ES_DRIVER(cuEventElapsedTime)(&ms, from, to) != CUDA_SUCCESS)
        return ES_UNTOLD;
    return (int64_t)((double)ms * 1e6);
}

void es_marker_await_begin(struct es_marker marker) {
    awaited = marker.event;
    spent_context = -1;
    es_context_await(marker.context, true);
}

bool es_marker_await(struct es_marker marker, CUcontext owner) {
    const struct es_quiet quiet = es_quiet_begin();
    const struct es_entered entered = es_context_enter(owner);
    const bool over = entered.current && is_over(ES_DRIVER(cuEventSynchronize)(marker.event));

    es_context_leave(entered);
    es_quiet_end(quiet);
    es_lock_take(&es_state_lock);
    awaited = NULL;
    es_marker_give(spent_context, marker.event);
    es_context_await(marker.context, false);
    es_context_drop(marker.context);
    es_lock_give(&es_state_lock);
    return over;
}

ES_UNCHECKED void es_markers_reset(void) {
    memset(pools, 0, sizeof(pools));
    awaited = NULL;
}
