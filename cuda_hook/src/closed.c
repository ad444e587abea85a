#include "closed.h"

#include "contexts.h"
#include "gate.h"
#include "symbols.h"

static struct es_closed queue[ES_CLOSED]; /* closed, oldest first */
static uint32_t first, count;
static bool collecting; /* atomic: one thread at a time asks the driver about the head */
static CUevent awaited; /* the helper sleeps on this marker, which must not be used anew meanwhile */
static int spent_context; /* … and it would have gone back to the pool of this context; -1: not yet */

/* The latest end that was counted, from which the next batch of its context is. */
static CUevent latest;
static int latest_context = -1;
static struct es_counted counted;

void es_closed_give(int context, CUevent event)
{
    if (event == awaited && event != NULL)
        spent_context = context;
    else if (context >= 0)
        es_marker_give(context, event);
}

void es_closed_push(struct es_closed batch)
{
    queue[(first + count) % ES_CLOSED] = batch;
    count++;
    es_timeline_close(&es_gate.timeline, batch.work.mark_ns);
}

void es_closed_waited(uint64_t used_ns)
{
    es_gate.gpu_ns += used_ns;
    counted.waited_ns += used_ns;
}

static bool ended(const struct es_closed *batch)
{
    if (batch->end == NULL)
        return es_now_ns() >= batch->work.opened_ns + batch->work.cost_ns;
    /* An error is an end too: a kernel that failed, a context that is gone. It is the program that must hear of it. */
    return ES_DRIVER(cuEventQuery)(batch->end) != CUDA_ERROR_NOT_READY;
}

/* With the lock held: takes in how long the device took to come to a batch that began `start_ns` before its end. When it fell
 * free may have been foretold wrongly: no single time counts for more than twice the usual one. */
static void learn_hand_over(const struct es_closed *batch, int64_t start_ns, uint64_t ended_ns)
{
    const uint64_t begun_ns = ended_ns - (uint64_t)start_ns, usual_ns = es_gate.hand_over_ns;
    uint64_t ns = begun_ns > batch->awaited_ns ? begun_ns - batch->awaited_ns : 0;

    if (usual_ns != 0 && ns > 2 * usual_ns)
        ns = 2 * usual_ns;
    es_gate.hand_over_ns = usual_ns == 0 ? ns : (uint64_t)((int64_t)usual_ns + ((int64_t)ns - (int64_t)usual_ns) / 8);
}

/* With the lock held: the head has ended. */
static void account(const struct es_closed *batch, const struct es_spent *spent, uint64_t now_ns)
{
    if (batch->end == NULL)
        es_closed_waited(batch->work.cost_ns);
    else
        es_gate.gpu_ns += spent->gpu_ns;
    if (batch->key != 0 && spent->teaches && spent->whole)
        es_costs_learn(&es_gate.costs, batch->key, spent->own_ns / batch->launches);
    else if (batch->key != 0 && spent->teaches)
        es_costs_learn_part(&es_gate.costs, batch->key, spent->own_ns / batch->launches, spent->gpu_ns / batch->launches);
    else if (batch->key != 0)
        es_costs_miss(&es_gate.costs, batch->key, batch->amid);
    if (batch->start != NULL && spent->measured)
        es_gate.burst_ns = (uint64_t)((int64_t)es_gate.burst_ns + ((int64_t)spent->gpu_ns - (int64_t)es_gate.burst_ns) / 8);
    es_closed_give(batch->start_context, batch->start);
    if (spent->behind || batch->end == NULL) {
        es_closed_give(batch->context, batch->end);
    } else {
        es_closed_give(latest_context, latest);
        latest = batch->end;
        latest_context = batch->context;
        counted.ended_ns = spent->ended_ns;
    }
    if (batch->end != NULL && batch->work.mark_ns > counted.mark_ns) {
        counted.mark_ns = batch->work.mark_ns;
        counted.waited_ns = 0;
    }
    first = (first + 1) % ES_CLOSED;
    count--;
    es_timeline_end(&es_gate.timeline, batch->work.mark_ns, count > 0 ? queue[first].work.mark_ns : 0, spent->ended_ns);
    es_gate_hint(now_ns);
}

/* The time from one marker to another. */
static int64_t elapsed_ns(CUevent from, CUevent to)
{
    float ms = 0;

    if (from == NULL || ES_DRIVER(cuEventElapsedTime)(&ms, from, to) != CUDA_SUCCESS)
        return ES_UNTOLD;
    return (int64_t)((double)ms * 1e6);
}

void es_closed_collect(void)
{
    struct es_quiet quiet;
    bool progress = false;

    es_locks_hold();
    if (__atomic_exchange_n(&collecting, true, __ATOMIC_ACQUIRE)) {
        es_locks_drop();
        return;
    }
    quiet = es_quiet_begin();
    for (;;) {
        uint64_t now_ns;
        int64_t start_ns = ES_UNTOLD, after_ns = ES_UNTOLD;
        struct es_closed head;
        struct es_spent spent;
        CUevent before;
        bool held = false, over;

        es_lock_take(&es_gate.lock);
        if (count == 0) {
            es_lock_give(&es_gate.lock);
            break;
        }
        head = queue[first];
        if (head.end != NULL)
            held = es_context_hold(head.context);
        before = latest_context == head.context ? latest : NULL;
        es_lock_give(&es_gate.lock);

        over = head.end != NULL && !held; /* the context ended, and with it the marker */
        if (!over)
            over = ended(&head);
        /* Not before: a thread that is put aside in between would take an end for earlier than it was. */
        now_ns = es_now_ns();
        if (over && held) {
            start_ns = head.start_context == head.context ? elapsed_ns(head.start, head.end) : ES_UNTOLD;
            after_ns = elapsed_ns(before, head.end);
        }
        es_lock_take(&es_gate.lock);
        if (held)
            es_context_drop(head.context);
        if (over) {
            spent = es_spent_by(&head.work, &counted, start_ns, after_ns, now_ns);
            if (head.awaited_ns != 0 && start_ns >= 0)
                learn_hand_over(&head, start_ns, spent.ended_ns);
            account(&queue[first], &spent, now_ns);
            progress = true;
        }
        es_lock_give(&es_gate.lock);
        if (!over)
            break;
    }
    es_quiet_end(quiet);
    __atomic_store_n(&collecting, false, __ATOMIC_RELEASE);
    es_locks_drop();
    if (progress) {
        __atomic_fetch_add(&es_gate.progress, 1, __ATOMIC_RELEASE);
        if (__atomic_load_n(&es_gate.backlog_waiters, __ATOMIC_RELAXED) != 0)
            es_wake_all(&es_gate.progress);
    }
}

bool es_closed_await(void)
{
    struct es_quiet quiet;
    struct es_closed head;
    bool held = false;

    es_lock_take(&es_gate.lock);
    if (count == 0) {
        es_lock_give(&es_gate.lock);
        return false;
    }
    head = queue[first];
    if (head.end != NULL)
        held = es_context_hold(head.context);
    if (held) {
        awaited = head.end;
        spent_context = -1;
    }
    es_lock_give(&es_gate.lock);
    if (held) {
        quiet = es_quiet_begin();
        es_context_enter(head.context);
        (void)ES_DRIVER(cuEventSynchronize)(head.end);
        es_quiet_end(quiet);
        es_lock_take(&es_gate.lock);
        awaited = NULL;
        es_closed_give(spent_context, head.end);
        es_context_drop(head.context);
        es_lock_give(&es_gate.lock);
    } else if (head.end == NULL) {
        const uint64_t now_ns = es_now_ns();
        const uint64_t end_ns = head.work.opened_ns + head.work.cost_ns;
        const uint32_t seen = __atomic_load_n(&es_gate.progress, __ATOMIC_ACQUIRE);

        if (end_ns > now_ns)
            es_sleep_on(&es_gate.progress, seen, end_ns - now_ns);
    }
    es_closed_collect();
    return true;
}

uint32_t es_closed_count(void)
{
    return count;
}

bool es_closed_full(void)
{
    return count + ES_STREAMS >= ES_CLOSED;
}

void es_closed_forget(int context)
{
    for (uint32_t i = 0; i < count; i++) {
        struct es_closed *batch = &queue[(first + i) % ES_CLOSED];

        if (batch->start_context == context)
            batch->start = NULL;
        if (batch->context == context)
            batch->end = NULL;
    }
    if (latest_context == context) {
        latest = NULL;
        latest_context = -1;
    }
}

void es_closed_reset(void)
{
    first = count = 0;
    collecting = false;
    awaited = latest = NULL;
    latest_context = -1;
    counted = (struct es_counted){0};
}
