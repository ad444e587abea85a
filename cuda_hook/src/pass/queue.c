#include "pass/queue.h"

#include "backlog/backlog.h"
#include "backlog/closed.h"
#include "backlog/submitted.h"
#include "base/log.h"
#include "base/state.h"
#include "core/clock.h"
#include "driver/contexts.h"
#include "driver/markers.h"
#include "link/link.h"
#include "markers/batches.h"
#include "markers/collect.h"
#include "markers/hint.h"
#include "backlog/measured.h"
#include "markers/stops.h"
#include "pass/grant.h"
#include "pass/helper.h"
#include "pass/room.h"
#include "threads/keys.h"

enum {
    OVERDUE_NS = 10 * 1000 * 1000, /* a head marker so late: its estimate is worth nothing, launches pass singly, … */
    /* … at this distance, and so many times their own length: where others have queued much, what passes must not keep
     * the queue from ever draining. */
    OVERDUE_STEP_NS = 10 * 1000 * 1000,
    OVERDUE_STEP_COSTS = 3,
    UNKNOWN_NS = 100 * 1000 * 1000, /* how long a function's second launch waits for the time of the first */
    GUESS_NS = 100 * 1000,          /* what a function counts for until its first time is known */
    BRIEF_NS = 2 * 1000,            /* … and a copy of less than two pages for good, unless it is found to be wrong */
};

/* The n-th thread that holds what it has not used yet may draw at least an 8n-th of what is free: the others may never use
 * theirs. So n threads hold at most 1 + (1/2 + … + 1/n) / 8 times the cap between them: 1.5 times it where they are 64. */
enum { LEAST_PART = 8 };

/* A thread that is put aside while it looks what has ended keeps all others from it for as long. */
enum { UNSEEN_NS = 1000 * 1000 * 1000 };

enum { YIELD_LOOK_NS = 50 * 1000 }; /* where the queue is to run empty: how soon it is noticed that it has, where nobody says so */

enum { PLACE_LOOK_NS = 50 * 1000 }; /* where threads within the driver hold all places: how soon one is noticed */

static bool uncounted_said; /* atomic */

/* What a launch counts for before it has run. */
static uint64_t expected_ns(const struct es_cost *cost)
{
    return cost->samples == 0 ? GUESS_NS : es_costs_usual_ns(cost, es_link_others());
}

/* With the lock held: launches pass singly. For how long one of this cost has to wait before it is its turn; 0: it is. */
static uint64_t wait_for_turn_ns(uint64_t cost_ns, uint64_t now_ns)
{
    const uint64_t next_ns = es_grant.overdue_pass_ns + OVERDUE_STEP_NS + OVERDUE_STEP_COSTS * cost_ns;

    if (now_ns < next_ns)
        return next_ns - now_ns;
    es_grant.overdue_pass_ns = now_ns;
    return 0;
}

/* With the lock held: how much the thread may draw for a submission of this cost, or for how long it has to wait first
 * (then *wait_ns is not 0). Only what is queued makes it wait; what others may still submit makes its part smaller. */
static uint64_t draw(const struct es_room *room, uint64_t cost_ns, const struct es_cost *cost, uint64_t queued_ns, uint32_t word,
                     uint64_t now_ns, uint64_t *wait_ns)
{
    const uint64_t overdue_ns = es_timeline_overdue_ns(&es_backlog.timeline, now_ns);
    const uint64_t free_ns = queued_ns < room->cap_ns ? room->cap_ns - queued_ns : 0;
    const struct es_unspent others = es_unspent(word);
    const uint64_t least_ns = free_ns / LEAST_PART / (others.threads + 1);

    *wait_ns = 0;
    if (room->yields && overdue_ns <= OVERDUE_NS && !es_submitted_drained()) {
        *wait_ns = queued_ns > YIELD_LOOK_NS ? queued_ns : YIELD_LOOK_NS;
    } else if (cost->samples == 0 && cost->pending_since_ns != 0 && now_ns < cost->pending_since_ns + UNKNOWN_NS) {
        *wait_ns = cost->pending_since_ns + UNKNOWN_NS - now_ns;
    } else if (queued_ns > room->level_ns && overdue_ns <= OVERDUE_NS) {
        *wait_ns = overdue_ns > 0 ? OVERDUE_NS - overdue_ns + 1 : es_room_wait_ns(room, queued_ns);
    } else if (queued_ns > room->level_ns) {
        /* The cap delays, it does not block: what runs may wait for what comes. */
        *wait_ns = wait_for_turn_ns(cost_ns, now_ns);
        return 0;
    }
    return others.ns + least_ns < free_ns ? free_ns - others.ns : least_ns;
}

/* Waits for a closed batch to end, at most wait_ns; `seen` was read under the lock. */
static void wait_for_progress(uint32_t seen, uint64_t wait_ns)
{
    __atomic_fetch_add(&es_backlog.waiters, 1, __ATOMIC_SEQ_CST);
    es_helper_call(0);
    es_progress_wait(seen, wait_ns);
    __atomic_fetch_sub(&es_backlog.waiters, 1, __ATOMIC_RELAXED);
}

/* Its stream may be done before the others are, and nobody tells: the driver is asked again after about one of these. */
static uint64_t wait_in_stream_ns(uint64_t wait_ns, uint64_t cost_ns)
{
    const uint64_t look_ns = cost_ns > PLACE_LOOK_NS ? cost_ns : PLACE_LOOK_NS;

    return wait_ns < look_ns ? wait_ns : look_ns;
}

bool es_queue_give_up(struct es_patience *patience, uint64_t key)
{
    const bool looked = es_collect();
    uint64_t now_ns, waited_ns, wait_ns = PLACE_LOOK_NS;
    uint32_t progress;

    es_lock_take(&es_state_lock);
    now_ns = es_now_ns();
    progress = __atomic_load_n(&es_progress, __ATOMIC_RELAXED);
    if (patience->since_ns == 0 || patience->progress != progress) {
        *patience = (struct es_patience){progress, now_ns};
        es_lock_give(&es_state_lock);
        return false;
    }
    waited_ns = now_ns - patience->since_ns;
    if (waited_ns > (looked ? OVERDUE_NS : UNSEEN_NS)) {
        /* What runs may wait for what comes. */
        wait_ns = wait_for_turn_ns(expected_ns(es_costs_find(&es_backlog.costs, key)), now_ns);
    } else if (es_closed_full() && waited_ns <= OVERDUE_NS) {
        /* Until there is room for a batch, a quarter of all. Not woken as each marker is done: that may be every few
         * microseconds. */
        wait_ns = es_queued_ns(now_ns) / (ES_CLOSED / ES_STREAMS);
        if (wait_ns < PLACE_LOOK_NS)
            wait_ns = PLACE_LOOK_NS;
        if (wait_ns > OVERDUE_NS - waited_ns)
            wait_ns = OVERDUE_NS - waited_ns + 1;
    }
    es_lock_give(&es_state_lock);
    if (wait_ns > 0)
        es_progress_wait(progress, wait_ns);
    else if (!__atomic_exchange_n(&uncounted_said, true, __ATOMIC_RELAXED))
        es_log("more streams (%d) are busy at once than are told apart, and none ends: some launches are not counted",
               ES_STREAMS);
    return wait_ns == 0;
}

/* The thread's open batch takes in a launch of this key and cost, for the first time, most likely. By that thread. */
static void share(struct es_slot *slot, uint64_t key, struct es_cost *cost)
{
    if (slot->batch.key != key && !slot->batch.shared) {
        slot->batch.shared = true;
        es_costs_share(&es_backlog.costs, es_costs_look(&es_backlog.costs, slot->batch.key));
    }
    if (slot->batch.shared)
        es_costs_share(&es_backlog.costs, cost);
    if (!es_costs_sure(cost))
        slot->batch.guessed = true;
}

/* The thread is busy, and its word holds. */
static bool join(struct es_slot *slot, uint64_t key, CUstream stream)
{
    struct es_pass *pass = es_passes_find(slot->passes, key, stream);
    const bool held = es_passes_holds(slot->passes, pass, key, stream);
    struct es_cost *cost = NULL;
    int64_t cost_ns = pass->cost_ns, left_ns;

    if (!held) {
        if (!es_passes_know(slot->passes, stream))
            return false;
        cost = es_costs_look(&es_backlog.costs, key);
        cost_ns = es_costs_known_ns(&es_backlog.costs, cost, key, es_link_others());
        if (cost_ns == 0)
            return false;
    }
    left_ns = __atomic_load_n(&slot->left_ns, __ATOMIC_RELAXED) - cost_ns;
    if (left_ns < 0)
        return false;
    if (!held) {
        share(slot, key, cost);
        es_passes_put(slot->passes, pass, key, stream, cost_ns);
    }
    __atomic_store_n(&slot->left_ns, left_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->launches, slot->launches + 1, __ATOMIC_RELAXED);
    return true;
}

bool es_queue_join(struct es_slot *slot, uint64_t key, CUstream stream)
{
    /* As in es_gate_pass: while the slot is busy and its word holds, nobody else writes what is the thread's. */
    __atomic_store_n(&slot->busy, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (__atomic_load_n(__atomic_load_n(&es_link_word, __ATOMIC_RELAXED), __ATOMIC_RELAXED) ==
            __atomic_load_n(&slot->word, __ATOMIC_RELAXED) &&
        join(slot, key, stream))
        return true;
    __atomic_store_n(&slot->busy, 0, __ATOMIC_RELAXED);
    return false;
}

bool es_queue_take(struct es_slot *slot, uint64_t key, CUstream stream, int index, uint32_t word)
{
    const uint64_t bit = UINT64_C(1) << index;
    const bool shared = word != es_word_open;
    const uint64_t now_ns = es_now_ns();
    struct es_cost *cost;
    struct es_room room;
    uint64_t drawn_ns = 0, wait_ns = 0, cost_ns;
    bool unknown, tells, open, alone, held, more, stops, timed = false;
    uint32_t progress;

    es_lock_take(&es_state_lock);
    progress = __atomic_load_n(&es_progress, __ATOMIC_RELAXED);
    cost = es_costs_find(&es_backlog.costs, key);
    if (cost->samples == 0 && es_key_is_brief(key))
        es_costs_assume(cost, BRIEF_NS);
    unknown = cost->samples == 0;
    /* Beside others' work the time of a function that is known would tell nothing. */
    tells = cost->provisional || !es_link_mixed(es_link_siblings());
    cost_ns = expected_ns(cost);
    room = es_room_now(word, cost_ns, now_ns);
    open = slot->batch.opened_ns != 0;
    /* A thread's own default stream is one with all other threads' here. */
    stops = shared && tells && stream != CU_STREAM_PER_THREAD && es_key_is_launch(key) && es_costs_vague(&es_backlog.costs, cost) &&
            es_stop_can() && (es_streams_busy() & ~bit) == 0;
    /* Now and then a function that always shares its batches, or is always amid other work, is timed by itself. */
    alone = shared && (unknown || stops || (tells && cost->exact == 0 && es_costs_due(&es_backlog.costs, cost)));
    if (shared && !stops && (!tells || cost->exact != 0))
        es_costs_put_off(&es_backlog.costs, cost);
    es_costs_ask(&es_backlog.costs, cost);
    held = (es_backlog.held_streams & bit) != 0;
    more = open && slot->left_ns < 0 && !alone && !held && !es_batch_full(slot, room.cap_ns) &&
           es_room_launches(&room, cost, index) == UINT64_MAX;
    if (more || !open) {
        /* Also while nobody shares: a manager that comes back finds no more queued than it would have let be. */
        const uint64_t most = es_room_launches(&room, cost, index);

        drawn_ns = draw(&room, cost_ns, cost, es_room_queued_ns(slot, index, &room, now_ns), word, now_ns, &wait_ns);
        if (wait_ns == 0 && most == 0)
            wait_ns = wait_for_turn_ns(cost_ns, now_ns);
        if (most < drawn_ns / cost_ns)
            drawn_ns = most * cost_ns;
    } else if ((slot->left_ns < 0 || alone || held) && slot->launches != slot->batch.settled && !slot->marking) {
        if (!es_closed_full()) {
            es_lock_give(&es_state_lock);
            es_batch_close(slot, false);
            return false;
        }
        wait_ns = wait_for_turn_ns(cost_ns, now_ns);
    }
    if (wait_ns > 0) {
        if (es_backlog.overlap.seen)
            wait_ns = wait_in_stream_ns(wait_ns, cost_ns);
        es_hint_write(now_ns);
        es_lock_give(&es_state_lock);
        wait_for_progress(progress, wait_ns);
        (void)es_collect();
        return false;
    }
    if (!open) {
        timed = es_batch_open(slot, index, drawn_ns, now_ns, unknown, held || stops);
        es_backlog.held_streams &= ~bit;
        slot->batch.key = key;
        es_costs_count(&es_backlog.costs, alone && !unknown);
        es_hint_write(now_ns);
    } else if (more) {
        es_batch_extend(slot, drawn_ns);
        es_hint_write(now_ns);
    }
    if (alone) {
        slot->batch.alone = true;
        slot->batch.guessed = !es_costs_sure(cost);
        cost->tries += stops && !open && cost->tries < UINT32_MAX;
        cost->pending_since_ns = slot->batch.opened_ns;
    } else {
        share(slot, key, cost);
    }
    slot->batch.streams |= bit;
    slot->left_ns -= (int64_t)cost_ns;
    if (unknown)
        es_backlog.unseen_ns = es_submitted_ns();
    slot->batch.last = alone || (slot->left_ns < 0 && es_batch_full(slot, room.cap_ns));
    /* Where a handle does not say which context is meant, every submission asks. */
    if (slot->left_ns >= 0 && !slot->batch.last &&
        !(es_contexts_many() && (uintptr_t)stream <= (uintptr_t)CU_STREAM_PER_THREAD)) {
        es_passes_put(slot->passes, es_passes_find(slot->passes, key, stream), key, stream, (int64_t)cost_ns);
        es_passes_note(slot->passes, stream);
    }
    es_lock_give(&es_state_lock);
    if (timed) {
        bool stopped = !open && stops && es_stop_begin(slot, index);
        const struct es_marker start = es_marker_record(index, false);

        es_lock_take(&es_state_lock);
        if (slot->batch.opened_ns != 0 && slot->batch.start == NULL && start.event != NULL) {
            slot->batch.start = start.event;
            slot->batch.start_context = start.context;
            slot->batch.started_ns = es_now_ns();
            slot->batch.stopped = stopped;
            slot->batch.others_ns = es_submitted_by_others(slot);
            if (!stopped)
                es_bursts_recorded(slot->batch.first ? &es_measured.begins : &es_measured.bursts, slot->batch.started_ns - now_ns);
        } else {
            slot->batch.fresh = start.event == NULL;
            es_marker_give(start.context, start.event);
        }
        stopped = stopped && !slot->batch.stopped;
        es_lock_give(&es_state_lock);
        if (stopped)
            es_stop_end(slot);
    }
    return true;
}
