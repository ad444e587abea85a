#include "markers/collect.h"

#include "backlog/backlog.h"
#include "backlog/closed.h"
#include "base/state.h"
#include "core/clock.h"
#include "driver/contexts.h"
#include "driver/markers.h"
#include "driver/streams.h"
#include "link/link.h"
#include "markers/hint.h"
#include "backlog/measured.h"
#include "markers/teach.h"

static bool collecting; /* atomic: one thread at a time asks the driver about the head */

/* The latest end that was counted, from which the next batch of its context is. */
static CUevent latest;
static int latest_context = -1;
static int latest_stream = ES_STREAM_NONE;
static struct es_counted counted;

/* With the lock held: all GPU time that is told to the manager comes by here. */
static void count(uint64_t gpu_ns, uint64_t ended_ns, bool beside)
{
    es_measured.gpu_ns += gpu_ns;
    es_used_count(es_link_used(), gpu_ns);
    es_used_idle(es_link_used(), es_gaps_end(&es_measured.gaps, ended_ns, gpu_ns, beside));
}

void es_collect_waited(uint64_t used_ns, uint64_t ended_ns, bool beside)
{
    count(used_ns, ended_ns, beside);
    counted.waited_ns += used_ns;
}

/* With the lock held, of one that was seen to have ended. */
static void look_beside(struct es_closed *batch)
{
    batch->beside = batch->beside || es_link_mixed(batch->siblings);
    /* Of an unknown function any time is better than a guess; that counts for one launch of each. */
    batch->work.beside = batch->beside && (batch->key == 0 || es_costs_find(&es_backlog.costs, batch->key)->samples != 0);
}

/* With the lock held: its stream is through with it, before the head of all is. */
static void pass_over(struct es_closed *batch, uint64_t now_ns)
{
    look_beside(batch);
    es_teach_passed_over(batch, now_ns);
    batch->key = 0;
    es_closed_pass_over(batch);
}

void es_collect_over(uint64_t streams, uint64_t now_ns)
{
    for (uint32_t i = 1; i < es_closed_count(); i++) {
        struct es_closed *batch = es_closed_at(i);

        if (batch->over || batch->stream == ES_STREAM_NONE || (streams >> batch->stream & 1) == 0)
            continue;
        pass_over(batch, now_ns);
    }
}

static bool ended(const struct es_closed *batch)
{
    if (batch->end == NULL)
        return es_now_ns() >= batch->work.opened_ns + batch->work.cost_ns;
    return es_marker_reached(batch->end);
}

/* With the lock held: what is counted of one that ran beside others' work. Of what siblings ran an estimate may be all of the time
 * in which both did, so that what is above the time that went by is not the longer launches'. */
static uint64_t beside_ns(const struct es_closed *batch, const struct es_spent *spent)
{
    const bool paused = batch->work.opened_ns > counted.ended_ns;
    const uint64_t from_ns = paused ? batch->work.opened_ns : counted.ended_ns;
    const uint64_t passed_ns = spent->ended_ns > from_ns ? spent->ended_ns - from_ns : 0;
    const uint64_t gpu_ns = es_overlap_together_ns(&es_backlog.overlap, spent->gpu_ns);

    return es_link_siblings() == 0 ? es_spent_beside(&es_backlog.beside, gpu_ns, passed_ns, paused) : gpu_ns;
}

/* With the lock held: the head has ended. */
static void account(const struct es_closed *batch, const struct es_spent *spent, uint64_t now_ns)
{
    if (es_measured.gaps.from_ns == 0 && spent->passed_ns != 0)
        es_gaps_begin(&es_measured.gaps, spent->ended_ns - spent->passed_ns);
    if (batch->end == NULL)
        es_collect_waited(batch->work.cost_ns, spent->ended_ns, batch->beside);
    else
        count(batch->work.beside ? beside_ns(batch, spent) : spent->gpu_ns, spent->ended_ns, batch->beside);
    if (!batch->beside)
        es_overlap_count(&es_backlog.overlap, batch->work.cost_ns, spent->gpu_ns);
    es_teach_ended(batch, spent, latest_stream);
    if (batch->start != NULL && spent->measured && !batch->beside)
        es_measured.burst_ns = (uint64_t)((int64_t)es_measured.burst_ns + ((int64_t)spent->gpu_ns - (int64_t)es_measured.burst_ns) / 8);
    es_marker_give(batch->start_context, batch->start);
    if (spent->behind || batch->end == NULL) {
        es_marker_give(batch->context, batch->end);
    } else {
        es_marker_give(latest_context, latest);
        latest = batch->end;
        latest_context = batch->context;
        latest_stream = batch->stream;
        counted.ended_ns = spent->ended_ns;
        counted.no_sooner_ns = spent->no_sooner_ns;
        counted.grant = batch->work.grant;
        counted.marked_ns = batch->work.marked_ns;
    }
    if (batch->end != NULL && batch->work.mark_ns > counted.mark_ns) {
        counted.mark_ns = batch->work.mark_ns;
        counted.waited_ns = 0;
    }
    es_backlog.over_ns += batch->work.cost_ns;
    es_closed_pop(spent->ended_ns);
    es_hint_write(now_ns);
}

/* With the lock held: the head was seen to have ended, so long after its start and after the latest end that was counted. */
static void end_head(int64_t start_ns, int64_t after_ns, uint64_t now_ns)
{
    struct es_closed *head = es_closed_at(0);
    struct es_spent spent;

    look_beside(head);
    spent = es_spent_by(&head->work, &counted, start_ns, after_ns, now_ns);
    if (after_ns >= 0 && counted.ended_ns + (uint64_t)after_ns > spent.ended_ns)
        es_teach_sooner(counted.ended_ns + (uint64_t)after_ns - spent.ended_ns);
    if (head->awaited_ns != 0 && start_ns >= 0 && !es_link_others())
        es_teach_hand_over(head, start_ns, spent.ended_ns);
    account(head, &spent, now_ns);
}

/* With the lock held: the oldest of a stream that is not asked about yet, behind the head and beside it. -1: there is none. */
static int beside_head(uint64_t asked)
{
    if (!es_backlog.overlap.seen)
        return -1;
    for (uint32_t i = 1; i < es_closed_count(); i++) {
        const struct es_closed *batch = es_closed_at(i);

        if (!batch->over && batch->stream != ES_STREAM_NONE && batch->stream != es_closed_at(0)->stream &&
            (asked >> batch->stream & 1) == 0)
            return (int)i;
    }
    return -1;
}

/* How long a batch's end, which was just seen to be done, was after its start and after `before`, in its context, which is
 * held. */
static void measure(const struct es_closed *batch, CUcontext owner, CUevent before, int64_t *start_ns, int64_t *after_ns)
{
    const struct es_entered entered = es_context_enter(owner);

    if (entered.current) {
        *start_ns = batch->start_context == batch->context ? es_marker_elapsed_ns(batch->start, batch->end) : ES_UNTOLD;
        *after_ns = es_marker_elapsed_ns(before, batch->end);
    }
    es_context_leave(entered);
}

/* When the stream came to a marker that was just seen to be done, so long after the latest end that was counted. */
static uint64_t stamp_ns(int64_t after_ns)
{
    const uint64_t now_ns = es_now_ns(), then_ns = counted.ended_ns + (uint64_t)after_ns;

    return after_ns != ES_UNTOLD && then_ns < now_ns ? then_ns : now_ns;
}

/* By the thread that collects: passes over what has ended in other streams than the head's. True where that is any. */
static bool collect_beside(void)
{
    uint64_t asked = 0;
    bool any = false;

    for (;;) {
        struct es_closed batch;
        CUcontext owner;
        CUevent before;
        uint64_t ended_ns = 0;
        int64_t start_ns = ES_UNTOLD, after_ns = ES_UNTOLD;
        bool held, over;
        int place;

        es_lock_take(&es_state_lock);
        place = beside_head(asked);
        if (place < 0) {
            es_lock_give(&es_state_lock);
            return any;
        }
        batch = *es_closed_at((uint32_t)place);
        batch.start = NULL;
        held = es_context_hold(batch.context);
        owner = es_context_handle(batch.context);
        before = latest_context == batch.context ? latest : NULL;
        es_lock_give(&es_state_lock);

        over = held && ended(&batch);
        if (over) {
            measure(&batch, owner, before, &start_ns, &after_ns);
            ended_ns = stamp_ns(after_ns);
        }
        es_lock_take(&es_state_lock);
        if (held)
            es_context_drop(batch.context);
        /* Meanwhile somebody may have waited for it, or its place become another stream's. */
        if (over && !es_closed_at((uint32_t)place)->over && es_closed_at((uint32_t)place)->stream == batch.stream)
            pass_over(es_closed_at((uint32_t)place), ended_ns);
        es_lock_give(&es_state_lock);
        any = any || over;
        if (!over)
            asked |= UINT64_C(1) << batch.stream;
    }
}

bool es_collect(void)
{
    struct es_quiet quiet;
    bool progress = false;

    es_locks_hold();
    if (__atomic_exchange_n(&collecting, true, __ATOMIC_ACQUIRE)) {
        es_locks_drop();
        return false;
    }
    quiet = es_quiet_begin();
    for (;;) {
        uint64_t now_ns;
        int64_t start_ns = ES_UNTOLD, after_ns = ES_UNTOLD;
        struct es_closed head;
        CUcontext owner;
        CUevent before;
        bool held = false, over;

        es_lock_take(&es_state_lock);
        if (es_closed_count() == 0) {
            es_lock_give(&es_state_lock);
            break;
        }
        head = *es_closed_at(0);
        if (head.end != NULL)
            held = es_context_hold(head.context);
        owner = es_context_handle(head.context);
        before = latest_context == head.context ? latest : NULL;
        es_lock_give(&es_state_lock);

        over = head.end != NULL && !held; /* the context ended, and with it the marker */
        if (!over)
            over = ended(&head);
        /* Not before: a thread that is put aside in between would take an end for earlier than it was. */
        now_ns = es_now_ns();
        if (over && held)
            measure(&head, owner, before, &start_ns, &after_ns);
        es_lock_take(&es_state_lock);
        if (held)
            es_context_drop(head.context);
        if (over) {
            end_head(start_ns, after_ns, now_ns);
            progress = true;
        }
        es_lock_give(&es_state_lock);
        if (!over)
            break;
    }
    progress = collect_beside() || progress;
    es_quiet_end(quiet);
    __atomic_store_n(&collecting, false, __ATOMIC_RELEASE);
    es_locks_drop();
    if (progress) {
        es_progress_count();
        if (__atomic_load_n(&es_backlog.waiters, __ATOMIC_RELAXED) != 0)
            es_progress_wake();
    }
    return true;
}

bool es_collect_await(void)
{
    struct es_closed head;
    CUcontext owner = NULL;
    bool held = false;

    es_lock_take(&es_state_lock);
    if (es_closed_count() == 0) {
        es_lock_give(&es_state_lock);
        return false;
    }
    head = *es_closed_at(0);
    if (head.end != NULL)
        held = es_context_hold(head.context);
    if (held) {
        es_marker_await_begin((struct es_marker){head.end, head.context});
        owner = es_context_handle(head.context);
    }
    es_lock_give(&es_state_lock);
    if (held) {
        es_marker_await((struct es_marker){head.end, head.context}, owner);
    } else if (head.end == NULL) {
        const uint64_t now_ns = es_now_ns();
        const uint64_t end_ns = head.work.opened_ns + head.work.cost_ns;
        const uint32_t seen = es_progress_seen();

        if (end_ns > now_ns)
            es_progress_wait(seen, end_ns - now_ns);
    }
    (void)es_collect();
    return true;
}

void es_collect_forget(int context)
{
    es_closed_forget(context);
    if (latest_context == context) {
        latest = NULL;
        latest_context = -1;
        latest_stream = ES_STREAM_NONE;
    }
}

void es_collect_leave_stream(int stream)
{
    es_closed_leave_stream(stream);
    es_teach_leave_stream(stream);
    es_backlog.held_streams &= ~(UINT64_C(1) << stream);
    if (latest_stream == stream)
        latest_stream = ES_STREAM_NONE;
}

void es_collect_reset(void)
{
    es_closed_reset();
    es_teach_reset();
    collecting = false;
    latest = NULL;
    latest_context = -1;
    latest_stream = ES_STREAM_NONE;
    counted = (struct es_counted){0};
}
