#include "closed.h"

#include "contexts.h"
#include "gate.h"
#include "symbols.h"

static struct es_closed queue[ES_CLOSED]; /* closed, oldest first */
static uint32_t first, count;
static bool collecting; /* atomic: one thread at a time asks the driver about the head */
static CUevent awaited; /* the helper sleeps on this marker, which must not be used anew meanwhile */
static int spent_context; /* … and it would have gone back to the pool of this context; -1: not yet */

/* The latest end that was seen, from which the next batch of its context is counted. Who waits for a marker wakes late,
 * but the markers themselves tell how long one was after the other: so the host's time of an end is the earliest that
 * agrees with what was seen since. It may creep, by a thousandth, as elapsed times are rounded. */
enum { CREEP_SHIFT = 10, AT_ONCE_NS = 2 * 1000 * 1000 };
static CUevent latest;
static int latest_context = -1;
static uint64_t latest_ended_ns;

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
}

static bool ended(const struct es_closed *batch, uint64_t now_ns)
{
    if (batch->end == NULL)
        return now_ns >= batch->opened_ns + batch->cost_ns;
    /* An error is an end too: a kernel that failed, a context that is gone. It is the program that must hear of it. */
    return ES_DRIVER(cuEventQuery)(batch->end) != CUDA_ERROR_NOT_READY;
}

/* With the lock held: the head has ended, and took `ns` (negative: unknown), `after_ns` after the latest (negative: before
 * it, or unknown). */
static void account(struct es_closed *batch, int64_t ns, bool measured, int64_t after_ns, uint64_t now_ns)
{
    const bool behind = measured && ns < 0; /* it ended before one that was counted already: another stream's */
    uint64_t ended_ns = now_ns;
    bool idle;

    if (after_ns >= 0 && latest_ended_ns + (uint64_t)(after_ns + (after_ns >> CREEP_SHIFT)) < now_ns)
        ended_ns = latest_ended_ns + (uint64_t)(after_ns + (after_ns >> CREEP_SHIFT));

    /* The marker was done as soon as it was recorded: the device had been idle. */
    idle = batch->late_ns != 0 && ended_ns < batch->late_ns + AT_ONCE_NS;
    if (!measured || (idle && ns > (int64_t)batch->cost_ns))
        es_gate.gpu_ns += batch->cost_ns;
    else if (ns > 0)
        es_gate.gpu_ns += (uint64_t)ns;
    if (batch->key != 0 && measured && ns >= 0 && !idle)
        es_costs_learn(&es_gate.costs, batch->key, (uint64_t)ns / batch->launches);
    else if (batch->key != 0)
        es_costs_find(&es_gate.costs, batch->key)->pending_since_ns = 0;
    if (batch->start != NULL && measured)
        es_gate.burst_ns = (uint64_t)((int64_t)es_gate.burst_ns + (ns - (int64_t)es_gate.burst_ns) / 8);
    es_closed_give(batch->start_context, batch->start);
    if (behind || batch->end == NULL) {
        es_closed_give(batch->context, batch->end);
    } else {
        es_closed_give(latest_context, latest);
        latest = batch->end;
        latest_context = batch->context;
        latest_ended_ns = ended_ns;
    }
    first = (first + 1) % ES_CLOSED;
    count--;
    es_timeline_end(&es_gate.timeline, count > 0 ? queue[first].cost_ns : 0, ended_ns);
    es_gate_hint(now_ns);
}

/* The time from one marker to another; false, and *ns as it was, when the driver does not say. */
static bool elapsed(CUevent from, CUevent to, int64_t *ns)
{
    float ms = 0;

    if (from == NULL || ES_DRIVER(cuEventElapsedTime)(&ms, from, to) != CUDA_SUCCESS)
        return false;
    *ns = (int64_t)((double)ms * 1e6);
    return true;
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
        const uint64_t now_ns = es_now_ns();
        struct es_closed head;
        CUevent from = NULL, before = NULL;
        uint64_t ended_before_ns = 0;
        bool held = false, measured = false, over;
        int64_t ns = -1, after_ns = -1;

        es_lock_take(&es_gate.lock);
        if (count == 0) {
            es_lock_give(&es_gate.lock);
            break;
        }
        head = queue[first];
        if (head.end != NULL) {
            held = es_context_hold(head.context);
            if (latest_context == head.context) {
                before = latest;
                ended_before_ns = latest_ended_ns;
            }
            if (head.start != NULL && head.start_context == head.context)
                from = head.start;
            else if (!head.fresh)
                from = before;
        }
        es_lock_give(&es_gate.lock);

        over = head.end != NULL && !held; /* the context ended, and with it the marker */
        if (!over)
            over = ended(&head, now_ns);
        if (over && held) {
            measured = elapsed(from, head.end, &ns);
            (void)elapsed(before, head.end, &after_ns);
            /* From its start, or from the end of what ran before it, though not from before it was there. */
            if (measured && from == head.start)
                ns -= (int64_t)head.behind_ns < ns ? (int64_t)head.behind_ns : ns;
            else if (measured && head.opened_ns > ended_before_ns)
                ns -= (int64_t)(head.opened_ns - ended_before_ns) < ns ? (int64_t)(head.opened_ns - ended_before_ns) : ns;
        }
        es_lock_take(&es_gate.lock);
        if (held)
            es_context_drop(head.context);
        if (over) {
            account(&queue[first], ns, measured, after_ns, now_ns);
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
        const uint64_t end_ns = head.opened_ns + head.cost_ns;
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
}
