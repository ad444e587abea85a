#include "pass/queue.h"

#include "backlog/backlog.h"
#include "backlog/closed.h"
#include "backlog/drawing.h"
#include "backlog/room.h"
#include "backlog/submitted.h"
#include "base/state.h"
#include "core/tools/clock.h"
#include "driver/contexts.h"
#include "driver/markers.h"
#include "driver/streams.h"
#include "link/link.h"
#include "markers/batches.h"
#include "markers/collect.h"
#include "markers/ends.h"
#include "markers/stops.h"
#include "pass/follow.h"
#include "pass/grant.h"
#include "pass/helper.h"
#include "threads/keys.h"
#include "usage/hint.h"
#include "usage/measured.h"

enum { BRIEF_NS = 2 * 1000 }; /* what a copy of less than two pages counts for, unless that is found to be wrong */

/* What is queued in other streams is little beside a launch that takes so many times as long. Simulated: where nothing is little,
 * told GPU time of 100 random programs is off by 1.27 % on the mean, not 1.13 %, and two fall short of their part, not one. */
enum { LITTLE_PART = 8 };

enum { STREAM_LOOK_NS = 50 * 1000 }; /* of another stream than the head's: how soon its end is noticed */

/* Waits for a closed batch to end, at most wait_ns; `seen` was read under the lock. */
static void wait_for_progress(uint32_t seen, uint64_t wait_ns) {
    __atomic_fetch_add(&es_backlog.waiters, 1, __ATOMIC_SEQ_CST);
    es_helper_call(0);
    es_progress_wait(seen, wait_ns);
    __atomic_fetch_sub(&es_backlog.waiters, 1, __ATOMIC_RELAXED);
}

/* Its stream may be done before the others are, and nobody tells: the driver is asked again after about one of these. */
static uint64_t wait_in_stream_ns(uint64_t wait_ns, uint64_t cost_ns) {
    const uint64_t look_ns = cost_ns > STREAM_LOOK_NS ? cost_ns : STREAM_LOOK_NS;

    return wait_ns < look_ns ? wait_ns : look_ns;
}

/* A submission that needs the lock, and what was found out about it. */
struct submission {
    struct es_slot *slot;
    uint64_t key;
    CUstream stream;
    int index;
    bool shared; /* a manager shares the device out */
    uint64_t now_ns;
    struct es_cost *cost;
    uint64_t cost_ns;
    struct es_room room;
    bool unknown;  /* no time of its function is known */
    bool open;     /* the thread has a batch open */
    bool stops;    /* its stream is to stand still until it is marked */
    bool amid;     /* other streams are not known to be idle; asked where it is to be timed by itself */
    bool alone;    /* it is to be timed by itself */
    bool lone;     /* nobody else uses the device while it does */
    bool singly;   /* it is long enough to be marked by itself, … */
    bool late;     /* … and the open batch is to end before it */
    bool held;     /* a function of the host is before it in its stream */
    bool wanted;   /* its time is wanted, and it is told whether the device is idle */
    bool more;     /* it goes on with the open batch, which needs more room */
    bool excludes; /* no other thread submits meanwhile */
};

static uint64_t bit_of(const struct submission *s) { return UINT64_C(1) << s->index; }

/* Nobody else uses the device until the grant is over, as far as is known: it stands still where this program has nothing for it.
 * Where streams run beside each other the end of one says nothing of that. */
ES_LOCKED(es_state_lock) static bool has_it_alone(const struct submission *s) {
    return s->shared && !es_backlog.overlap.seen && !es_link_others() && es_link_siblings() == 0;
}

/* The markers that end the thread's batch, one in each of its streams; 0 where none is open. */
ES_LOCKED(es_state_lock) static uint32_t ends_of(const struct submission *s) {
    return (uint32_t)__builtin_popcountll(s->slot->batch.streams);
}

/* The open batch ends before a launch that is marked by itself, where there are markers for that: the device may have run it long
 * ago, and waited for this launch. */
ES_LOCKED(es_state_lock) static bool comes_late(const struct submission *s) {
    return s->open && s->singly && es_markers_left(ends_of(s)) && s->slot->launches != s->slot->batch.settled;
}

/* What it costs, and whether it is to be timed. */
ES_LOCKED(es_state_lock) static void weigh(struct submission *s, uint32_t word) {
    bool tells, left, may_stop;

    s->cost = es_costs_find(&es_backlog.costs, s->key);
    if (s->cost->samples == 0 && es_key_is_brief(s->key))
        es_costs_assume(s->cost, BRIEF_NS);
    s->unknown = s->cost->samples == 0;
    /* Beside others' work the time of a function that is known would tell nothing. */
    tells = s->cost->provisional || !es_link_mixed(es_link_siblings());
    s->open = s->slot->batch.opened_ns != 0;
    /* Its start and its end, and those of the batch that is open. */
    left = !es_backlog.singly || es_markers_left(2 + ends_of(s));
    s->cost_ns = es_expected_ns(s->cost);
    s->room = es_room_now(word, s->cost_ns, s->now_ns);
    s->lone = has_it_alone(s);
    s->singly = s->lone && es_costs_marked_singly(s->cost_ns);
    /* A thread's own default stream is one with all other threads' here. */
    may_stop = s->shared && tells && left && s->stream != CU_STREAM_PER_THREAD && es_key_is_launch(s->key) &&
               es_costs_vague(&es_backlog.costs, s->cost) && es_stop_can();
    s->amid = (may_stop || s->singly) && (es_streams_busy() & ~bit_of(s)) != 0;
    s->stops = may_stop && (!s->amid || es_own_queued_ns(s->now_ns) == 0);
    s->excludes = s->stops && es_costs_disturbed(s->cost);
    /* Now and then a function that always shares its batches, or is always amid other work, is timed by itself. */
    s->alone = s->shared &&
               (s->unknown || s->stops || (tells && left && s->cost->exact == 0 && es_costs_due(&es_backlog.costs, s->cost)));
    if (s->shared && !s->stops && (!tells || s->cost->exact != 0))
        es_costs_put_off(&es_backlog.costs, s->cost);
    es_costs_ask(s->cost);
    s->held = (es_backlog.held_streams & bit_of(s)) != 0;
    s->wanted = s->singly || (s->lone && (s->unknown || (!left && es_costs_vague(&es_backlog.costs, s->cost))));
    s->late = comes_late(s);
    s->more = s->open && !s->late && s->slot->left_ns < 0 && !s->alone && !s->held && !es_batch_full(s->slot, s->room.cap_ns) &&
              es_room_launches(&s->room, s->cost, s->index) == UINT64_MAX;
}

/* What it may draw where it begins a batch or needs more room, and for how long it has to wait first. Also while
 * nobody shares: a manager that comes back finds no more queued than it would have let be. */
ES_LOCKED(es_state_lock) static uint64_t draw_for(const struct submission *s, uint32_t word, uint64_t *wait_ns) {
    const uint64_t most = es_room_launches(&s->room, s->cost, s->index);
    const uint64_t queued_ns = es_room_queued_ns(s->slot, s->index, &s->room, s->now_ns);
    const uint64_t drawn_ns = es_draw(&s->room, s->cost_ns, s->cost, queued_ns, word, s->now_ns, wait_ns);

    if (*wait_ns == 0 && most == 0)
        *wait_ns = es_draw_singly_ns(s->cost_ns, s->now_ns);
    return most < drawn_ns / s->cost_ns ? most * s->cost_ns : drawn_ns;
}

/* It cannot join the open batch, which ends before it. */
ES_LOCKED(es_state_lock) static bool ends_batch(const struct submission *s) {
    const struct es_slot *slot = s->slot;

    return s->open && !s->more && (slot->left_ns < 0 || s->alone || s->late || s->held) &&
           slot->launches != slot->batch.settled && !slot->marking;
}

/* Where a launch that is marked by itself begins a batch its start is recorded, too: then neither what runs before it in its stream
 * nor how long the device waited for it is in its time. Not while other streams have much, which may run before it or after. */
ES_LOCKED(es_state_lock) static bool begins_anew(const struct submission *s, bool timed) {
    struct es_batch_open *batch = &s->slot->batch;

    if (timed || !s->singly || !es_markers_left(es_ends_can_let_go() ? 1 : 2) ||
        (s->amid && batch->ahead_ns > s->cost_ns / LITTLE_PART))
        return timed;
    /* What another thread is about to submit may come behind the start, and stands in what was submitted before. */
    if (!s->amid && batch->ahead_ns != 0 &&
        (__atomic_load_n(&es_threads.arriving, __ATOMIC_SEQ_CST) > 1 || es_submitted_by_others(s->slot) == UINT64_MAX))
        return false;
    batch->fresh = false;
    if (!s->amid)
        batch->ahead_ns = 0;
    return true;
}

/* It goes, as part of the thread's batch. Returns whether the start of that is to be recorded. */
ES_LOCKED(es_state_lock) static bool enter(struct submission *s, uint64_t drawn_ns) {
    struct es_slot *slot = s->slot;
    bool timed = false;

    if (!s->open) {
        timed = es_batch_open(slot, s->index, drawn_ns, s->now_ns, s->unknown, s->held || s->stops);
        timed = begins_anew(s, timed);
        slot->batch.anew = timed && s->singly && es_ends_let_go();
        es_backlog.held_streams &= ~bit_of(s);
        slot->batch.key = s->key;
        es_costs_count(&es_backlog.costs, s->alone && !s->unknown);
        es_hint_write(s->now_ns);
    } else if (s->more) {
        es_batch_extend(slot, drawn_ns);
        es_hint_write(s->now_ns);
    }
    if (s->alone) {
        slot->batch.alone = true;
        slot->batch.guessed = !es_costs_sure(s->cost);
        s->cost->tries += s->stops && !s->open && s->cost->tries < UINT32_MAX;
        s->cost->pending_since_ns = slot->batch.opened_ns;
    } else {
        es_follow_share(slot, s->key, s->cost, s->cost_ns);
    }
    slot->batch.streams |= bit_of(s);
    slot->left_ns -= (int64_t)s->cost_ns;
    /* When a function of the host ends nobody knows, nor, before that, when what is queued behind it will have run. */
    if (s->unknown || s->held)
        es_backlog.unseen_ns = es_submitted_ns();
    slot->batch.last = s->alone || (slot->left_ns < 0 && es_batch_full(slot, s->room.cap_ns));
    if (!slot->batch.last && s->singly && es_markers_left(ends_of(s)))
        slot->batch.last = es_backlog.singly = true;
    /* Where a handle does not say which context is meant, every submission asks. */
    if (slot->left_ns >= 0 && !slot->batch.last && !s->singly &&
        !(es_contexts_many() && (uintptr_t)s->stream <= (uintptr_t)CU_STREAM_PER_THREAD)) {
        es_passes_put(slot->passes, es_passes_find(slot->passes, s->key, s->stream), s->key, s->stream, (int64_t)s->cost_ns);
        es_passes_note(slot->passes, s->stream);
    }
    return timed;
}

/* Records the start of the batch that it began. */
static void record_start(const struct submission *s) {
    struct es_slot *slot = s->slot;
    const bool excludes = !s->open && s->excludes && es_grant_exclude(slot);
    bool stopped = !s->open && s->stops && es_stop_begin(slot, s->index);
    uint64_t others_ns = UINT64_MAX;
    struct es_marker start;

    if (excludes && stopped)
        others_ns = es_stop_others_ns(slot);
    start = es_marker_record(s->index, false);
    es_lock_take(&es_state_lock);
    if (slot->batch.opened_ns != 0 && slot->batch.start == NULL && start.event != NULL) {
        slot->batch.start = start.event;
        slot->batch.start_context = start.context;
        slot->batch.started_ns = es_now_ns();
        slot->batch.stopped = stopped;
        /* Another thread may have come to another stream meanwhile. */
        if (s->amid || (es_streams_busy() & ~bit_of(s)) != 0)
            slot->batch.others_ns = UINT64_MAX;
        else
            slot->batch.others_ns = excludes ? others_ns : es_submitted_by_others(slot);
        if (!stopped)
            es_bursts_recorded(slot->batch.first ? &es_measured.begins : &es_measured.bursts, slot->batch.started_ns - s->now_ns);
    } else {
        slot->batch.fresh = start.event == NULL;
        es_marker_give(start.context, start.event);
    }
    stopped = stopped && !slot->batch.stopped;
    es_lock_give(&es_state_lock);
    if (stopped)
        es_stop_end(slot);
    if (excludes && !slot->batch.stopped)
        es_grant_include(slot);
}

bool es_queue_take(struct es_slot *slot, uint64_t key, CUstream stream, int number, uint32_t word) {
    struct submission s = {slot, key, stream, number % ES_STREAMS, .shared = word != es_word_open, .now_ns = es_now_ns()};
    uint64_t drawn_ns = 0, wait_ns = 0;
    uint32_t progress;
    bool timed;

    es_lock_take(&es_state_lock);
    weigh(&s, word);
    /* Where a launch is to be timed by itself it has to be known whether the device is idle. */
    if (s.wanted && es_closed_count() > 0) {
        es_lock_give(&es_state_lock);
        (void)es_collect();
        es_lock_take(&es_state_lock);
        s.now_ns = es_now_ns();
        weigh(&s, word);
    }
    if (es_stream_index(number) != s.index) {
        es_lock_give(&es_state_lock);
        return false;
    }
    progress = __atomic_load_n(&es_progress, __ATOMIC_RELAXED);
    if (s.more || !s.open) {
        drawn_ns = draw_for(&s, word, &wait_ns);
    } else if (ends_batch(&s)) {
        if (!es_closed_full()) {
            slot->batch.late = s.late;
            es_lock_give(&es_state_lock);
            es_batch_close(slot, false);
            return false;
        }
        wait_ns = es_draw_singly_ns(s.cost_ns, s.now_ns);
    }
    if (wait_ns > 0) {
        if (es_backlog.overlap.seen)
            wait_ns = wait_in_stream_ns(wait_ns, s.cost_ns);
        es_hint_write(s.now_ns);
        es_lock_give(&es_state_lock);
        wait_for_progress(progress, wait_ns);
        (void)es_collect();
        return false;
    }
    timed = enter(&s, drawn_ns);
    es_lock_give(&es_state_lock);
    if (timed)
        record_start(&s);
    return true;
}
