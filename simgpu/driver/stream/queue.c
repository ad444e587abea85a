/* A context's queue: work goes in without a lock of the machine's, waits sleep until the engine's prediction. */
#include <sched.h>
#include <sys/prctl.h>

#include "driver/base/driver.h"
#include "driver/context/context.h"
#include "driver/pool/pool.h"
#include "driver/stream/queue.h"
#include "driver/stream/stream.h"

/* How long before the predicted end a waiter is awake: a sleep overruns by 30 µs (median) to 50 µs (p90) on a virtual
 * machine's idle core. A real driver spins or yields all the time by default; with blocking sync it sleeps. */
#define AWAKE_NS 60000u
#define AWAKE_BLOCKING_NS 20000u
/* A sleep is never longer, so that a fault or another's death is seen soon; beside others an eighth of the wait, but
 * never shorter than the second: many waiters would do nothing but wake. */
#define NAP_NS 10000000u
#define NAP_BESIDE_OTHERS_NS 1000000u
/* A launch that found the queue full waits until so many entries are free, or so long. */
#define FREE_ENTRIES 16
#define FREE_NS 1000000u

CUresult queue_error(const struct CUctx_st *context) {
    if (__atomic_load_n(&context->shared->id, __ATOMIC_RELAXED) != context->id ||
        load_u32(&context->shared->state) != SIMGPU_CONTEXT_LIVE)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return (CUresult)load_u32(&context->shared->error);
}

static struct simgpu_gpu *gpu_of(const struct CUctx_st *context) { return &driver.machine.shared->gpus[context->gpu]; }

static void nap_until(uint64_t time_ns) {
    struct timespec until = {.tv_sec = (time_t)(time_ns / 1000000000u), .tv_nsec = (long)(time_ns % 1000000000u)};
    /* The default slack of 50 µs would be as long as a hand-over may take. */
    int slack_ns = prctl(PR_GET_TIMERSLACK);
    prctl(PR_SET_TIMERSLACK, 1ul);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    if (slack_ns > 0)
        prctl(PR_SET_TIMERSLACK, (unsigned long)slack_ns);
}

/* Brings the simulation up to now. Returns when the context may have completed so many; `others` says whether other
 * contexts have queued work. */
static uint64_t look(struct CUctx_st *context, uint64_t completed, bool *others) {
    struct simgpu_machine *shared = driver.machine.shared;
    struct simgpu_gpu *gpu = gpu_of(context);
    machine_advance_and_lock(&driver.machine, context->gpu);
    uint64_t end_ns = engine_earliest_end_ns(gpu, shared->scheduling, context->index, completed - 1);
    *others = engine_others_queued(gpu, context->index);
    gpu_unlock(gpu);
    return end_ns;
}

bool queue_is_away(struct CUctx_st *context) {
    struct simgpu_gpu *gpu = gpu_of(context);
    if (engine_is_one_contexts(gpu, context->index))
        return false;
    machine_advance_and_lock(&driver.machine, context->gpu);
    bool away = engine_is_away(gpu, context->index);
    gpu_unlock(gpu);
    return away;
}

static const struct simgpu_order *order_before(const struct CUctx_st *context, uint64_t after) {
    return &context->orders->orders[(after - 1) % SIMGPU_RING];
}

bool queue_known_done(const struct CUctx_st *context, uint64_t after) {
    return load_u64(&context->shared->completed) >= after ||
           (context->orders && load_u32(&order_before(context, after)->state) == SIMGPU_DONE);
}

bool queue_done(struct CUctx_st *context, uint64_t after) {
    if (queue_known_done(context, after))
        return true;
    bool others;
    look(context, after, &others);
    if (others)
        machine_reap(&driver.machine, clock_now_ns());
    return queue_known_done(context, after);
}

void queue_settle(struct CUevent_st *event) {
    const struct CUctx_st *context = event->context;
    if (!event->recorded || load_u64(&event->done_ns) || !queue_known_done(context, event->after))
        return;
    uint64_t end_ns = event->after ? context->ring->entries[(event->after - 1) % SIMGPU_RING].end_ns : 0;
    /* Into an empty stream a record is under way for as long as a launch. */
    uint64_t idle_ns = event->record_ns + ENGINE_LAUNCH_LATENCY_NS;
    store_u64(&event->done_ns, end_ns > event->record_ns ? end_ns : idle_ns);
}

/* Notes the times of events whose entries will soon be overwritten. Under the context's lock. */
static void events_settle(struct CUctx_st *context) {
    for (struct CUevent_st *event = context->events; event; event = event->next)
        queue_settle(event);
}

/* What is waited for: all entries before a number are done, the last of them is, or has its turn. */
enum goal { ALL, LAST, TURN };

static bool is_reached(const struct CUctx_st *context, uint64_t after, enum goal goal) {
    if (goal == LAST || load_u64(&context->shared->completed) >= after)
        return queue_known_done(context, after);
    return goal == TURN && load_u32(&order_before(context, after)->state) != SIMGPU_WAITS;
}

/* So many must be done before the goal is nearer: where the last of all is done, the first that is not. */
static uint64_t next_done(const struct CUctx_st *context, uint64_t after) {
    return queue_known_done(context, after) ? load_u64(&context->shared->completed) + 1 : after;
}

/* Sleeps or spins until something may have happened: at `end_ns` at the latest, and never past `deadline_ns`. */
static void wait_for(uint64_t end_ns, uint64_t deadline_ns, bool blocking, bool others) {
    uint64_t awake_ns = blocking ? AWAKE_BLOCKING_NS : AWAKE_NS;
    uint64_t now_ns = clock_now_ns();
    if (end_ns > deadline_ns)
        end_ns = deadline_ns;
    if (end_ns > now_ns + awake_ns) {
        uint64_t nap_ns = others ? (end_ns - now_ns) / 8 : NAP_NS;
        nap_ns = nap_ns < NAP_BESIDE_OTHERS_NS ? NAP_BESIDE_OTHERS_NS : nap_ns > NAP_NS ? NAP_NS : nap_ns;
        nap_until(now_ns + nap_ns < end_ns - awake_ns ? now_ns + nap_ns : end_ns - awake_ns);
        return;
    }
    clock_spin_until(end_ns);
}

static CUresult wait_until(struct CUctx_st *context, uint64_t after, enum goal goal, uint64_t deadline_ns, bool blocking) {
    for (;;) {
        CUresult error = queue_error(context);
        if (error != CUDA_SUCCESS)
            return error;
        if (is_reached(context, after, goal))
            return CUDA_SUCCESS;
        if (clock_now_ns() >= deadline_ns)
            return CUDA_ERROR_NOT_READY;
        bool others;
        uint64_t end_ns = look(context, next_done(context, after), &others);
        if (others)
            machine_reap(&driver.machine, clock_now_ns());
        if (!is_reached(context, after, goal))
            wait_for(end_ns, deadline_ns, blocking, others);
    }
}

static CUresult wait_and_settle(struct CUctx_st *context, uint64_t after, enum goal goal, bool blocking) {
    CUresult result = wait_until(context, after, goal, UINT64_MAX, blocking);
    if (result == CUDA_SUCCESS)
        pools_settle();
    return result;
}

CUresult queue_wait(struct CUctx_st *context, uint64_t after, bool blocking) {
    return wait_and_settle(context, after, LAST, blocking);
}

CUresult queue_wait_turn(struct CUctx_st *context, uint64_t number, bool blocking) {
    return context->orders ? wait_and_settle(context, number + 1, TURN, blocking)
                           : wait_and_settle(context, number, ALL, blocking);
}

CUresult queue_drain(struct CUctx_st *context, bool blocking) {
    return wait_and_settle(context, load_u64(&context->shared->tail), ALL, blocking);
}

/* With the context locked; it is let go meanwhile. */
static CUresult wait_for_room(struct CUctx_st *context) {
    CUresult result = CUDA_SUCCESS;
    while (result == CUDA_SUCCESS && load_u64(&context->shared->tail) - context->shared->completed >= SIMGPU_QUEUE) {
        uint64_t first = load_u64(&context->shared->tail) - SIMGPU_QUEUE;
        pthread_mutex_unlock(&context->lock);
        result = wait_until(context, first + 1, ALL, UINT64_MAX, false);
        if (result == CUDA_SUCCESS) {
            CUresult more = wait_until(context, first + FREE_ENTRIES, ALL, clock_now_ns() + FREE_NS, true);
            result = more == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : more;
        }
        pthread_mutex_lock(&context->lock);
    }
    return result;
}

/* So many entries before `number` is the one before `after`; 0: none that still matters. */
static uint32_t distance(const struct CUctx_st *context, uint64_t number, uint64_t after) {
    return after > load_u64(&context->shared->completed) ? (uint32_t)(number + 1 - after) : 0;
}

static uint32_t scope_of(const struct CUstream_st *stream) {
    if (stream == &stream->context->legacy)
        return SIMGPU_SCOPE_LEGACY;
    return stream->flags & CU_STREAM_NON_BLOCKING ? SIMGPU_SCOPE_NONE : SIMGPU_SCOPE_BLOCKING;
}

struct piece {
    uint32_t kind, place, scope;
    uint64_t duration_ns;
    uint64_t waits_after; /* 0: for nothing but its stream */
};

static CUresult push(struct CUstream_st *stream, const struct piece *piece, uint64_t *number) {
    struct CUctx_st *context = stream->context;
    struct simgpu_context *shared = context->shared;
    CUresult result = queue_error(context);
    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&context->lock);
    uint64_t tail = shared->tail;
    if (tail - load_u64(&shared->completed) >= SIMGPU_QUEUE) {
        result = wait_for_room(context);
        tail = shared->tail;
    }
    if (result == CUDA_SUCCESS) {
        struct simgpu_entry *entry = &context->ring->entries[tail % SIMGPU_RING];
        context->queued_ns += piece->duration_ns;
        *entry = (struct simgpu_entry){
            .enqueue_ns = clock_now_ns(),
            .duration_ns = piece->duration_ns,
            .queued_ns = context->queued_ns,
            .kind = piece->kind,
            .stream = stream->id,
        };
        if (context->orders)
            context->orders->orders[tail % SIMGPU_RING] = (struct simgpu_order){
                .behind = distance(context, tail, stream->after),
                .waits = distance(context, tail, piece->waits_after),
                .place = piece->place,
                .scope = piece->scope,
            };
        store_u64(&shared->tail, tail + 1);
        store_u64(&stream->after, tail + 1);
        if (!(stream->flags & CU_STREAM_NON_BLOCKING))
            store_u64(&context->blocking_after, tail + 1);
        if ((tail + 1) % SIMGPU_QUEUE == 0)
            events_settle(context);
        if (number)
            *number = tail;
    }
    pthread_mutex_unlock(&context->lock);
    return result;
}

CUresult queue_push(struct CUstream_st *stream, uint32_t kind, uint64_t duration_ns, uint32_t place, uint64_t *number) {
    struct piece piece = {.kind = kind, .place = place, .scope = scope_of(stream), .duration_ns = duration_ns};
    return push(stream, &piece, number);
}

CUresult queue_order(struct CUstream_st *stream, uint64_t after) {
    if (queue_known_done(stream->context, after))
        return CUDA_SUCCESS;
    struct piece piece = {.kind = SIMGPU_ORDER, .scope = scope_of(stream), .waits_after = after};
    return push(stream, &piece, NULL);
}

CUresult queue_gather(struct CUstream_st *stream) {
    struct CUctx_st *context = stream->context;
    uint64_t blocking_after = load_u64(&context->blocking_after);
    if (!context->orders || stream != &context->legacy || load_u64(&stream->after) >= blocking_after ||
        load_u64(&context->shared->completed) >= blocking_after)
        return CUDA_SUCCESS;
    struct piece piece = {.kind = SIMGPU_ORDER, .scope = SIMGPU_SCOPE_LOOK};
    return push(stream, &piece, NULL);
}
