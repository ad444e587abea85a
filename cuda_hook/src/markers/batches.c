#include "markers/batches.h"

#include "backlog/backlog.h"
#include "backlog/closed.h"
#include "backlog/submitted.h"
#include "base/state.h"
#include "core/clock.h"
#include "driver/markers.h"
#include "driver/streams.h"
#include "link/link.h"
#include "markers/collect.h"
#include "markers/hint.h"
#include "backlog/measured.h"
#include "markers/stops.h"
#include "markers/thinks.h"

/* A launch comes no earlier before the device is free, unless another's drain takes longer than was foretold. */
enum { LONG_BURST_NS = 200 * 1000 }; /* bursts of this length are timed each, of shorter ones some (es_bursts) */

enum { BEHIND_MOST_NS = 1000 * 1000 };

/* With the lock held: how long the device will still run what others queued before this client was let in. */
static uint64_t behind_ns(uint64_t now_ns)
{
    const uint64_t before_ns = es_link_before_ns(now_ns);

    return before_ns < BEHIND_MOST_NS ? before_ns : 0;
}

bool es_batch_open(struct es_slot *slot, int stream, uint64_t drawn_ns, uint64_t now_ns, bool unknown, bool held)
{
    const bool idle = es_submitted_drained();
    const uint32_t number = es_mode_now() == ES_JOINED ? es_gate_number(es_gate_load(es_link.page)) : 0;
    const bool begin = number != es_measured.begun;
    bool timed = held || (idle && (unknown || es_measured.burst_ns >= LONG_BURST_NS));

    /* At the begin of a grant the device may still run what others queued: too much for the time of a short burst. */
    slot->batch.grant = number;
    slot->batch.first = begin;
    slot->batch.brief = idle && begin && !timed;
    if (idle && !timed)
        timed = es_bursts_choose(begin ? &es_measured.begins : &es_measured.bursts, now_ns);
    es_measured.begun = number;
    if (idle) {
        es_backlog.run_from_ns = es_submitted_ns();
        es_gaps_begin(&es_measured.gaps, begin ? 0 : now_ns);
    }
    es_thinks.idle_since_ns = 0;
    es_link_submits(now_ns);
    slot->batch.behind_ns = behind_ns(now_ns);
    slot->batch.before_ns = es_submitted_ns();
    slot->batch.ahead_ns = idle ? 0 : es_own_queued_ns(now_ns);
    slot->batch.queued = es_queued_beside(stream, now_ns);
    slot->batch.drawn_ns = drawn_ns;
    slot->batch.opened_ns = now_ns;
    slot->batch.unsure_ns = 0;
    slot->batch.awaited_ns = 0;
    slot->batch.key = 0;
    slot->batch.reached = false;
    slot->batch.shared = false;
    slot->batch.alone = false;
    slot->batch.held = held;
    slot->batch.stopped = false;
    slot->batch.guessed = false;
    slot->batch.siblings = es_link_siblings();
    slot->batch.beside = es_link_mixed(slot->batch.siblings);
    slot->batch.last = false;
    slot->batch.fresh = idle && !timed;
    slot->batch.amid = !idle;
    __atomic_store_n(&slot->left_ns, (int64_t)drawn_ns, __ATOMIC_RELAXED);
    return timed;
}

/* With the lock held: the batch holds nothing any more, its thread must ask before the next. When that thread is not
 * the one that does this, it may be about to submit as part of the batch: without a word it looks again. */
static void clear(struct es_slot *slot)
{
    if (slot != es_slot_self)
        __atomic_store_n(&slot->word, 0, __ATOMIC_RELAXED);
    slot->batch = (struct es_batch_open){.settled = slot->batch.settled};
    __atomic_store_n(&slot->left_ns, -1, __ATOMIC_RELAXED);
    es_slot_forget(slot);
}

/* With the lock held: the batch may use no more without asking. What it has used stays. */
static void take_back(struct es_slot *slot)
{
    const uint64_t used = es_submitted_in(slot);

    /* That left_ns is one below zero counts as used. */
    slot->batch.drawn_ns = used - (used != 0);
    __atomic_store_n(&slot->left_ns, -1, __ATOMIC_RELAXED);
}

bool es_batch_full(const struct es_slot *slot, uint64_t cap_ns)
{
    return slot->batch.alone || es_submitted_in(slot) >= cap_ns / 2;
}

void es_batch_extend(struct es_slot *slot, uint64_t drawn_ns)
{
    slot->batch.drawn_ns = es_submitted_in(slot) + drawn_ns;
    __atomic_store_n(&slot->left_ns, (int64_t)drawn_ns, __ATOMIC_RELAXED);
}

/* With the lock held: what other threads have open is part of what was submitted, too. */
static bool others_guessed(const struct es_slot *slot)
{
    for (size_t i = 0; i < es_slots_used(); i++) {
        if (es_slot_at(i) != slot && es_slot_at(i)->batch.opened_ns != 0 && es_slot_at(i)->batch.guessed)
            return true;
    }
    return false;
}

/* The grant under which a batch was opened is over: a thread that is put aside closes its batch when the manager has let others
 * in, as what it had launched has run by all estimates. */
static bool grant_is_over(uint32_t grant)
{
    const uint32_t word = es_mode_now() == ES_JOINED ? es_gate_load(es_link.page) : 0;

    return grant != 0 && ((word & ES_GATE_HELD) == 0 || es_gate_number(word) != grant);
}

static void close_batch(struct es_slot *slot, bool foreign)
{
    struct es_batch_open open;
    struct es_closed batch;
    struct es_marker ends[ES_STREAMS];
    uint64_t used, launches, now_ns;
    bool stalled;

    es_lock_take(&es_state_lock);
    launches = __atomic_load_n(&slot->launches, __ATOMIC_RELAXED) - slot->batch.settled;
    if (slot->marking || slot->batch.opened_ns == 0 || es_closed_full()) {
        /* Nothing to close; or so much is closed and not done that this batch had better stay open: its thread asks
         * before each launch. */
        take_back(slot);
        es_lock_give(&es_state_lock);
        return;
    }
    if (launches == 0) {
        es_marker_give(slot->batch.start_context, slot->batch.start);
        if (slot->batch.alone)
            es_costs_find(&es_backlog.costs, slot->batch.key)->pending_since_ns = 0;
        clear(slot);
        es_lock_give(&es_state_lock);
        return;
    }
    slot->marking = true;
    open = slot->batch;
    used = es_submitted_in(slot);
    now_ns = es_now_ns();
    stalled = es_closed_count() > 0 && es_closed_at(es_closed_count() - 1)->work.exact && !open.stopped;
    batch = (struct es_closed){
        .start = open.start,
        .context = -1,
        .stream = ES_STREAM_NONE,
        .start_context = open.start_context,
        .work = {
            .cost_ns = used,
            .opened_ns = open.opened_ns,
            .before_ns = open.before_ns,
            .ahead_ns = open.ahead_ns,
            .mark_ns = es_submitted_ns(),
            .alone_ns = es_closed_count() == 0 && (!open.amid || es_queued_ns(now_ns) == 0) ? now_ns : 0,
            .launches = launches,
            .grant = open.grant,
            .behind_ns = open.behind_ns,
            .unsure_ns = open.unsure_ns,
            .stalled = stalled,
            .foreign = foreign,
            .reached = open.reached,
            .fresh = open.fresh,
        },
        .awaited_ns = open.awaited_ns,
        .amid = open.amid,
        .held = open.held,
        .siblings = open.siblings,
        .beside = open.beside || es_link_mixed(open.siblings),
        .key = open.shared || (open.streams & (open.streams - 1)) != 0 ? 0 : open.key,
        .launches = launches,
    };
    if ((open.guessed || others_guessed(slot)) && es_backlog.guessed_ns < batch.work.mark_ns)
        es_backlog.guessed_ns = batch.work.mark_ns;
    batch.work.known_ns = batch.work.mark_ns > es_backlog.guessed_ns ? batch.work.mark_ns - es_backlog.guessed_ns : 0;
    es_lock_give(&es_state_lock);

    for (int i = 0; i < ES_STREAMS; i++)
        ends[i] = (open.streams >> i & 1) != 0 ? es_marker_record(i, foreign) : (struct es_marker){NULL, -1};
    batch.work.marked_ns = es_now_ns();

    es_lock_take(&es_state_lock);
    batch.work.left = grant_is_over(open.grant);
    batch.work.exact = open.stopped && !foreign && es_stop_holds(slot);
    batch.work.lone = batch.work.exact && open.others_ns != UINT64_MAX && es_submitted_by_others(slot) == open.others_ns;
    for (int i = 0; i < ES_STREAMS; i++) {
        if (ends[i].event == NULL)
            continue;
        if (open.streams >> i == 1)
            batch.queued = es_queued_with(open.queued, used, launches, __builtin_popcountll(open.streams));
        batch.end = ends[i].event;
        batch.context = ends[i].context;
        batch.stream = i;
        es_closed_push(batch);
        /* The first stands for the batch; it has ended when the others have too. */
        batch.start = NULL;
        batch.awaited_ns = 0;
        batch.work.cost_ns = 0;
    }
    if (batch.end == NULL)
        es_closed_push(batch);
    es_timeline_settle(&es_backlog.timeline, used);
    slot->batch.settled += launches;
    slot->marking = false;
    clear(slot);
    es_hint_write(es_now_ns());
    es_lock_give(&es_state_lock);
}

void es_batch_close(struct es_slot *slot, bool foreign)
{
    close_batch(slot, foreign);
    es_stop_end(slot);
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

bool es_batches_beside(uint64_t streams)
{
    bool any = false;

    es_lock_take(&es_state_lock);
    for (size_t i = 0; i < es_slots_used(); i++)
        any = any || (es_slot_at(i) != es_slot_self && (es_slot_at(i)->batch.streams & streams) != 0);
    es_lock_give(&es_state_lock);
    return any;
}

/* With the lock held: has all ended? Then the device is idle from now on. */
static void note_drained(void)
{
    if (es_thinks.idle_since_ns != 0 || !es_submitted_drained())
        return;
    es_thinks.idle_since_ns = es_now_ns();
    /* Who is on its way may have a batch already. */
    if (__atomic_load_n(&es_threads.arriving, __ATOMIC_SEQ_CST) == 0)
        es_link_drained(es_thinks.idle_since_ns);
}

void es_batch_waited(struct es_slot *slot, uint64_t streams)
{
    es_lock_take(&es_state_lock);
    if (slot->batch.opened_ns != 0 && !slot->marking && (slot->batch.streams & ~streams) == 0) {
        const uint64_t used = es_submitted_in(slot);
        const struct es_queued queued = es_queued_with(slot->batch.queued, used, slot->launches - slot->batch.settled,
                                                       __builtin_popcountll(slot->batch.streams));

        const bool beside = slot->batch.beside || es_link_mixed(slot->batch.siblings);
        const uint64_t now_ns = es_now_ns();

        if (queued.beside_ns != 0 && !beside)
            es_overlap_judge(&es_backlog.overlap, queued, now_ns - slot->batch.opened_ns);
        es_timeline_settle(&es_backlog.timeline, used);
        es_backlog.over_ns += used;
        /* What ran beside other streams ran in a time that is counted as theirs. */
        if (!es_backlog.overlap.seen || (es_streams_busy() & ~slot->batch.streams) == 0)
            es_collect_waited(used, now_ns, beside);
        es_measured.burst_ns = (uint64_t)((int64_t)es_measured.burst_ns + ((int64_t)used - (int64_t)es_measured.burst_ns) / 8);
        es_marker_give(slot->batch.start_context, slot->batch.start);
        if (!slot->batch.shared && (slot->batch.alone || slot->batch.amid))
            es_costs_miss(&es_backlog.costs, slot->batch.key, slot->batch.amid);
        slot->batch.settled = slot->launches;
        clear(slot);
    }
    es_lock_give(&es_state_lock);
    es_batches_look(streams);
}

void es_batches_look(uint64_t streams)
{
    bool collect;

    es_lock_take(&es_state_lock);
    collect = es_closed_count() > 0;
    es_lock_give(&es_state_lock);
    if (collect)
        (void)es_collect();
    es_lock_take(&es_state_lock);
    if (es_backlog.overlap.seen)
        es_collect_over(streams, es_now_ns());
    note_drained();
    es_lock_give(&es_state_lock);
}

void es_batches_forget(int context)
{
    es_collect_forget(context);
    for (size_t i = 0; i < es_slots_used(); i++) {
        if (es_slot_at(i)->batch.start_context == context)
            es_slot_at(i)->batch.start = NULL;
    }
}
