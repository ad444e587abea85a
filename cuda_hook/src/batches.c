#include "batches.h"

#include <string.h>

#include "contexts.h"
#include "gate.h"
#include "symbols.h"

struct batch {
    CUevent start; /* where its burst began, or NULL: it follows the one before */
    uint64_t behind_ns; /* of the time since the start, what was others' */
    CUevent end;   /* NULL: no marker could be had, it ends by its estimate */
    int context, start_context;
    uint64_t cost_ns; /* estimate */
    uint64_t opened_ns;
    uint64_t key; /* 0: of several functions, teaches nothing */
    uint64_t launches;
    bool fresh; /* began on an idle device at an unknown time: count the estimate */
    uint64_t late_ns; /* when it was closed, if all should have ended before; else 0 */
};

/* The manager grants no earlier before the device is free. */
enum { BEHIND_MOST_NS = 1000 * 1000 };

static struct batch queue[ES_BATCHES]; /* closed, oldest first */
static uint32_t first, count;
static bool collecting; /* atomic: one thread at a time asks the driver about the head */
static CUevent awaited; /* the helper sleeps on this marker, which must not be used anew meanwhile */
static int spent_context; /* … and it would have gone back to the pool of this context; -1: not yet */

/* The latest end that was seen, from which the next batch of its context is counted. Who waits for a marker wakes late,
 * but the markers themselves tell how long one was after the other: so the host's time of an end is the earliest that
 * agrees with what was seen since. It may creep, by a thousandth, as elapsed times are rounded. */
enum { CREEP_SHIFT = 10, AT_ONCE_NS = 200 * 1000 };
static CUevent latest;
static int latest_context = -1;
static uint64_t latest_ended_ns;

void es_batches_return(void)
{
    const uint64_t most_ns = 4 * es_gate.anticipation_ns; /* one long pause must not count for many short ones */
    uint64_t think_ns;

    es_lock_take(&es_gate.lock);
    if (es_gate.idle_since_ns == 0) {
        es_lock_give(&es_gate.lock);
        return;
    }
    think_ns = es_now_ns() - es_gate.idle_since_ns;
    if (think_ns > most_ns)
        think_ns = most_ns;
    if (es_gate.thoughts == 0)
        es_gate.think_ns = think_ns;
    es_gate.thoughts += es_gate.thoughts < UINT32_MAX;
    es_gate.think_ns = (uint64_t)((int64_t)es_gate.think_ns + ((int64_t)think_ns - (int64_t)es_gate.think_ns) / 4);
    es_gate.idle_since_ns = 0;
    es_lock_give(&es_gate.lock);
}

/* With the lock held: how long the device will still run what others queued before this client was let in. */
static uint64_t behind_ns(uint64_t now_ns)
{
    const uint64_t free_at_ns =
        es_mode_now() == ES_JOINED ? __atomic_load_n(&es_gate.page->free_at_ns, __ATOMIC_RELAXED) : 0;

    return free_at_ns > now_ns && free_at_ns - now_ns < BEHIND_MOST_NS ? free_at_ns - now_ns : 0;
}

bool es_batch_open(struct es_slot *slot, uint64_t drawn_ns, uint64_t now_ns, bool unknown)
{
    const bool idle = es_batches_drained();
    bool timed = false;

    if (idle) {
        timed = unknown || es_gate.burst_ns >= ES_LONG_BURST_NS || es_gate.bursts++ % ES_TIMED_BURSTS == 0;
    }
    es_gate.idle_since_ns = 0;
    slot->batch.behind_ns = behind_ns(now_ns);
    slot->batch.drawn_ns = drawn_ns;
    slot->batch.opened_ns = now_ns;
    slot->batch.key = 0;
    slot->batch.shared = false;
    slot->batch.alone = false;
    slot->batch.last = false;
    slot->batch.fresh = idle && !timed;
    slot->left_ns = (int64_t)drawn_ns;
    es_timeline_open(&es_gate.timeline, drawn_ns, now_ns);
    return timed;
}

/* With the lock held: back to its pool, unless the helper sleeps on it. */
static void give(int context, CUevent event)
{
    if (event == awaited && event != NULL)
        spent_context = context;
    else if (context >= 0)
        es_marker_give(context, event);
}

/* With the lock held: the batch holds nothing any more, its thread must ask before the next. When that thread is not
 * the one that does this, it may be about to submit as part of the batch: without a word it looks again. */
static void clear(struct es_slot *slot)
{
    if (slot != es_slot_self)
        __atomic_store_n(&slot->word, 0, __ATOMIC_RELAXED);
    slot->batch = (struct es_batch_open){.settled = slot->batch.settled};
    es_slot_forget(slot);
}

static uint64_t used_ns(const struct es_slot *slot)
{
    /* left_ns goes below zero by the last launch; only an open batch has drawn something. */
    return slot->batch.opened_ns == 0 ? 0 : (uint64_t)((int64_t)slot->batch.drawn_ns - slot->left_ns);
}

bool es_batch_full(const struct es_slot *slot, uint64_t cap_ns)
{
    return slot->batch.alone || used_ns(slot) >= cap_ns / 2;
}

uint64_t es_batches_queued_ns(uint64_t now_ns)
{
    uint64_t queued_ns = es_timeline_backlog_ns(&es_gate.timeline, now_ns);

    for (size_t i = 0; i < es_slots_used(); i++) {
        const struct es_slot *slot = es_slot_at(i);
        const int64_t left_ns = slot->batch.opened_ns == 0 ? 0 : __atomic_load_n(&slot->left_ns, __ATOMIC_RELAXED);

        if (left_ns > 0)
            queued_ns -= (uint64_t)left_ns < queued_ns ? (uint64_t)left_ns : queued_ns;
    }
    return queued_ns;
}

void es_batch_extend(struct es_slot *slot, uint64_t drawn_ns)
{
    const uint64_t grown_ns = used_ns(slot) + drawn_ns - slot->batch.drawn_ns;

    slot->batch.drawn_ns += grown_ns;
    __atomic_store_n(&slot->left_ns, (int64_t)drawn_ns, __ATOMIC_RELAXED);
    es_gate.timeline.open_ns += grown_ns;
}

/* With the lock held. */
static void push(struct batch batch)
{
    queue[(first + count) % ES_BATCHES] = batch;
    count++;
}

void es_batch_close(struct es_slot *slot, bool foreign)
{
    struct es_batch_open open;
    CUevent ends[ES_STREAMS];
    uint64_t used, launches;
    uint64_t late_ns = 0;
    bool pushed = false;

    es_lock_take(&es_gate.lock);
    launches = __atomic_load_n(&slot->launches, __ATOMIC_RELAXED) - slot->batch.settled;
    if (slot->marking || slot->batch.opened_ns == 0 || count + ES_STREAMS >= ES_BATCHES) {
        /* Nothing to close; or so much is closed and not done that this batch had better stay open: its thread asks
         * before each launch. */
        __atomic_store_n(&slot->left_ns, -1, __ATOMIC_RELAXED);
        es_lock_give(&es_gate.lock);
        return;
    }
    if (launches == 0) {
        es_timeline_drop(&es_gate.timeline, slot->batch.drawn_ns);
        give(slot->batch.start_context, slot->batch.start);
        if (slot->batch.alone)
            es_costs_find(&es_gate.costs, slot->batch.key)->pending_since_ns = 0;
        clear(slot);
        es_lock_give(&es_gate.lock);
        return;
    }
    slot->marking = true;
    open = slot->batch;
    used = used_ns(slot);
    if (foreign && es_batches_queued_ns(es_now_ns()) == 0)
        late_ns = es_now_ns();
    es_lock_give(&es_gate.lock);

    for (int i = 0; i < ES_STREAMS; i++)
        ends[i] = (open.streams >> i & 1) != 0 ? es_marker_record(i, foreign) : NULL;

    es_lock_take(&es_gate.lock);
    es_timeline_close(&es_gate.timeline, open.drawn_ns, used, open.opened_ns, count == 0);
    for (int i = 0; i < ES_STREAMS; i++) {
        if (ends[i] == NULL)
            continue;
        /* The first stands for the batch; it has ended when the others have too. */
        push((struct batch){
            .start = pushed ? NULL : open.start,
            .behind_ns = open.behind_ns,
            .end = ends[i],
            .context = es_stream_context(i),
            .start_context = open.start_context,
            .cost_ns = pushed ? 0 : used,
            .opened_ns = open.opened_ns,
            .key = open.shared || (open.streams & (open.streams - 1)) != 0 ? 0 : open.key,
            .launches = launches,
            .fresh = open.fresh,
            .late_ns = late_ns,
        });
        pushed = true;
    }
    if (!pushed) {
        push((struct batch){
            .start = open.start,
            .context = -1,
            .start_context = open.start_context,
            .cost_ns = used,
            .opened_ns = open.opened_ns,
            .key = open.key,
            .launches = launches,
        });
    }
    slot->batch.settled += launches;
    slot->marking = false;
    clear(slot);
    es_gate_hint(es_now_ns());
    es_lock_give(&es_gate.lock);
}

bool es_batches_close_all(void)
{
    bool all = true;

    for (size_t i = 0; i < es_slots_used(); i++) {
        struct es_slot *slot = es_slot_at(i);

        if (es_slot_busy(slot))
            all = false;
        else
            es_batch_close(slot, true);
    }
    return all;
}

void es_batch_waited(struct es_slot *slot, uint64_t streams)
{
    bool collect;

    es_lock_take(&es_gate.lock);
    if (slot->batch.opened_ns != 0 && !slot->marking && (slot->batch.streams & ~streams) == 0) {
        const uint64_t used = used_ns(slot);

        es_timeline_drop(&es_gate.timeline, slot->batch.drawn_ns);
        es_gate.gpu_ns += used;
        es_gate.burst_ns = (uint64_t)((int64_t)es_gate.burst_ns + ((int64_t)used - (int64_t)es_gate.burst_ns) / 8);
        give(slot->batch.start_context, slot->batch.start);
        if (slot->batch.alone)
            es_costs_find(&es_gate.costs, slot->batch.key)->pending_since_ns = 0;
        slot->batch.settled = slot->launches;
        clear(slot);
    }
    collect = count > 0;
    es_lock_give(&es_gate.lock);
    if (collect)
        es_batches_collect();
    es_lock_take(&es_gate.lock);
    if (es_gate.idle_since_ns == 0 && es_batches_drained())
        es_gate.idle_since_ns = es_now_ns();
    es_lock_give(&es_gate.lock);
}

static bool ended(const struct batch *batch, uint64_t now_ns)
{
    if (batch->end == NULL)
        return now_ns >= batch->opened_ns + batch->cost_ns;
    /* An error is an end too: a kernel that failed, a context that is gone. It is the program that must hear of it. */
    return ES_DRIVER(cuEventQuery)(batch->end) != CUDA_ERROR_NOT_READY;
}

/* With the lock held: the head has ended, and took `ns` (negative: unknown), `after_ns` after the latest (negative: before
 * it, or unknown). */
static void account(struct batch *batch, int64_t ns, bool measured, int64_t after_ns, uint64_t now_ns)
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
    give(batch->start_context, batch->start);
    if (behind || batch->end == NULL) {
        give(batch->context, batch->end);
    } else {
        give(latest_context, latest);
        latest = batch->end;
        latest_context = batch->context;
        latest_ended_ns = ended_ns;
    }
    first = (first + 1) % ES_BATCHES;
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

void es_batches_collect(void)
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
        struct batch head;
        CUevent from = NULL, before = NULL;
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
            if (latest_context == head.context)
                before = latest;
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
            if (measured && from == head.start)
                ns -= (int64_t)head.behind_ns < ns ? (int64_t)head.behind_ns : ns;
            if (from == before)
                after_ns = ns;
            else
                (void)elapsed(before, head.end, &after_ns);
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

bool es_batches_await(void)
{
    struct es_quiet quiet;
    struct batch head;
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
        give(spent_context, head.end);
        es_context_drop(head.context);
        es_lock_give(&es_gate.lock);
    } else if (head.end == NULL) {
        const uint64_t now_ns = es_now_ns();
        const uint64_t end_ns = head.opened_ns + head.cost_ns;
        const uint32_t seen = __atomic_load_n(&es_gate.progress, __ATOMIC_ACQUIRE);

        if (end_ns > now_ns)
            es_sleep_on(&es_gate.progress, seen, end_ns - now_ns);
    }
    es_batches_collect();
    return true;
}

bool es_batches_drained(void)
{
    if (count > 0)
        return false;
    for (size_t i = 0; i < es_slots_used(); i++) {
        const struct es_slot *slot = es_slot_at(i);

        if (slot->marking || __atomic_load_n(&slot->busy, __ATOMIC_ACQUIRE) != 0 ||
            __atomic_load_n(&slot->launches, __ATOMIC_RELAXED) != slot->batch.settled)
            return false;
    }
    return true;
}

uint32_t es_batches_closed(void)
{
    return count;
}

uint64_t es_launches(void)
{
    uint64_t launches = 0;

    for (size_t i = 0; i < es_slots_used(); i++)
        launches += __atomic_load_n(&es_slot_at(i)->launches, __ATOMIC_RELAXED);
    return launches;
}

void es_batches_forget(int context)
{
    for (uint32_t i = 0; i < count; i++) {
        struct batch *batch = &queue[(first + i) % ES_BATCHES];

        if (batch->start_context == context)
            batch->start = NULL;
        if (batch->context == context)
            batch->end = NULL;
    }
    for (size_t i = 0; i < es_slots_used(); i++) {
        if (es_slot_at(i)->batch.start_context == context)
            es_slot_at(i)->batch.start = NULL;
    }
    if (latest_context == context) {
        latest = NULL;
        latest_context = -1;
    }
}

void es_batches_reset(void)
{
    first = count = 0;
    collecting = false;
    awaited = latest = NULL;
    latest_context = -1;
}
