#include "markers/batches.h"

#include "backlog/backlog.h"
#include "backlog/closed.h"
#include "backlog/submitted.h"
#include "base/state.h"
#include "core/tools/clock.h"
#include "driver/markers.h"
#include "driver/streams.h"
#include "link/link.h"
#include "markers/ends.h"
#include "markers/stops.h"
#include "usage/hint.h"
#include "usage/measured.h"
#include "usage/thinks.h"

enum { LONG_BURST_NS = 200 * 1000 }; /* bursts of this length are timed each, of shorter ones some (es_bursts) */
/* Whoever never waits for the device and yet has no more than a few launches queued after many has a host that is slower: two, of
 * which one may be the longest. One that is long enough to be marked by itself tells of none. Simulated: where no host is taken
 * for slower, up to 132 % too much is told of programs whose host is. */
enum { FEW = 2, MANY = 16 };

/* No launch comes earlier before the device is free, unless a drain overruns. Simulated: 0 in its place makes nothing worse. */
enum { BEHIND_MOST_NS = 1000 * 1000 };

/* How long the device will still run what others queued before this client was let in. */
ES_LOCKED(es_state_lock) static uint64_t behind_ns(uint64_t now_ns) {
    const uint64_t before_ns = es_link_before_ns(now_ns);

    return before_ns < BEHIND_MOST_NS ? before_ns : 0;
}

bool es_batch_open(struct es_slot *slot, int stream, uint64_t drawn_ns, uint64_t now_ns, bool unknown, bool held) {
    const bool idle = es_submitted_drained();
    const uint32_t number = es_mode_now() == ES_JOINED ? es_gate_number(es_gate_load(es_link.page)) : 0;
    const bool begin = number != es_measured.begun;
    const uint64_t ahead_ns = idle ? 0 : es_own_queued_ns(now_ns);
    /* By estimates the device is idle, but a thread's open batch may have been added to at any time: no clock tells when. */
    const bool perhaps_idle = idle || (ahead_ns == 0 && es_closed_count() == 0);
    bool timed = held || (idle && unknown) || (perhaps_idle && !unknown && es_measured.burst_ns >= LONG_BURST_NS);

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
    slot->batch.waits = es_backlog.waits;
    slot->batch.before_ns = es_submitted_ns();
    slot->batch.ahead_ns = ahead_ns;
    slot->batch.queued = es_queued_beside(stream, now_ns);
    slot->batch.drawn_ns = drawn_ns;
    slot->batch.opened_ns = now_ns;
    slot->batch.unsure_ns = 0;
    slot->batch.awaited_ns = 0;
    slot->batch.key = slot->batch.longest_ns = 0;
    slot->batch.reached = slot->batch.anew = false;
    slot->batch.shared = false;
    slot->batch.alone = false;
    slot->batch.held = held;
    slot->batch.stopped = false;
    slot->batch.guessed = false;
    slot->batch.siblings = es_link_siblings();
    slot->batch.beside = es_link_mixed(slot->batch.siblings);
    slot->batch.last = slot->batch.late = false;
    slot->batch.fresh = idle && !timed;
    slot->batch.amid = !idle;
    __atomic_store_n(&slot->left_ns, (int64_t)drawn_ns, __ATOMIC_RELAXED);
    return timed;
}

void es_batch_clear(struct es_slot *slot) {
    if (slot != es_slot_self)
        __atomic_store_n(&slot->word, 0, __ATOMIC_RELAXED);
    slot->batch = (struct es_batch_open){.settled = slot->batch.settled};
    __atomic_store_n(&slot->left_ns, -1, __ATOMIC_RELAXED);
    es_slot_forget(slot);
}

/* The batch may use no more without asking. What it has used stays. */
ES_LOCKED(es_state_lock) static void take_back(struct es_slot *slot) {
    const uint64_t used = es_submitted_in(slot);

    /* That left_ns is one below zero counts as used. */
    slot->batch.drawn_ns = used - (used != 0);
    __atomic_store_n(&slot->left_ns, -1, __ATOMIC_RELAXED);
}

bool es_batch_full(const struct es_slot *slot, uint64_t cap_ns) {
    return slot->batch.alone || es_submitted_in(slot) >= cap_ns / 2;
}

void es_batch_extend(struct es_slot *slot, uint64_t drawn_ns) {
    slot->batch.drawn_ns = es_submitted_in(slot) + drawn_ns;
    __atomic_store_n(&slot->left_ns, (int64_t)drawn_ns, __ATOMIC_RELAXED);
}

/* The grant under which a batch was opened is over: a thread that is put aside closes its batch when the manager has let others
 * in, as what it had launched has run by all estimates. */
static bool grant_is_over(uint32_t grant) {
    const uint32_t word = es_mode_now() == ES_JOINED ? es_gate_load(es_link.page) : 0;

    return grant != 0 && ((word & ES_GATE_HELD) == 0 || es_gate_number(word) != grant);
}

/* A batch on its way from open to closed: markers are recorded without the lock. */
struct closing {
    struct es_slot *slot;
    bool foreign;
    struct es_batch_open open; /* as it was */
    struct es_closed batch;    /* as it will be */
    uint64_t used_ns;
    uint64_t launches;
    struct es_marker ends[ES_STREAMS];
};

/* By estimates the device has come to within so little of the end of all that was submitted. What was closed and has not been
 * collected yet has ended where that was so when it was closed. */
ES_LOCKED(es_state_lock) static bool nearly_drained(const struct es_batch_open *open, uint64_t few_ns, uint64_t now_ns) {
    const uint32_t count = es_closed_count();
    const struct es_work *latest = count > 0 ? &es_closed_at(count - 1)->work : NULL;

    if (latest == NULL)
        return !open->amid || es_queued_ns(now_ns) <= few_ns;
    return few_ns != 0 && latest->alone_ns != 0 && es_submitted_ns() - latest->mark_ns <= now_ns - latest->alone_ns;
}

/* What is known of it before it is marked. */
ES_LOCKED(es_state_lock) static struct es_closed describe(const struct closing *closing, uint64_t now_ns) {
    const struct es_batch_open *open = &closing->open;
    const bool unwaited = open->waits == es_backlog.waits;
    const bool hosted = open->late || (unwaited && closing->launches >= MANY);
    const uint64_t mean_ns = closing->used_ns / closing->launches;
    const bool longer = open->longest_ns > mean_ns && !es_costs_marked_singly(open->longest_ns);
    const uint64_t few_ns = !hosted ? 0 : longer ? mean_ns + open->longest_ns : FEW * mean_ns;
    const bool stalled = es_closed_count() > 0 && es_closed_at(es_closed_count() - 1)->work.exact && !open->stopped;

    return (struct es_closed){
        .start = open->start,
        .context = -1,
        .stream = ES_STREAM_NONE,
        .start_context = open->start_context,
        .work =
            {
                .cost_ns = closing->used_ns,
                .opened_ns = open->opened_ns,
                .before_ns = open->before_ns,
                .ahead_ns = open->ahead_ns,
                .mark_ns = es_submitted_ns(),
                .alone_ns = nearly_drained(open, few_ns, now_ns) ? now_ns : 0,
                .few_ns = few_ns,
                .launches = closing->launches,
                .grant = open->grant,
                .behind_ns = open->behind_ns,
                .unsure_ns = open->unsure_ns,
                .stalled = stalled,
                .foreign = closing->foreign,
                .unwaited = unwaited,
                .reached = open->reached,
                .anew = open->anew && open->started_ns == 0,
                .fresh = open->fresh,
            },
        .awaited_ns = open->awaited_ns,
        .amid = open->amid,
        .held = open->held,
        .siblings = open->siblings,
        .beside = open->beside || es_link_mixed(open->siblings),
        .key = open->shared || (open->streams & (open->streams - 1)) != 0 ? 0 : open->key,
        .launches = closing->launches,
    };
}

/* A batch in which nothing was launched. */
ES_LOCKED(es_state_lock) static void drop_empty(struct es_slot *slot) {
    es_marker_give(slot->batch.start_context, slot->batch.start);
    if (slot->batch.alone)
        es_costs_find(&es_backlog.costs, slot->batch.key)->pending_since_ns = 0;
    es_batch_clear(slot);
}

/* False where there is nothing to mark. */
ES_LOCKED(es_state_lock) static bool begin_close(struct closing *closing) {
    struct es_slot *slot = closing->slot;

    closing->launches = __atomic_load_n(&slot->launches, __ATOMIC_RELAXED) - slot->batch.settled;
    if (slot->marking || slot->batch.opened_ns == 0 || es_closed_full()) {
        /* Nothing to close; or so much is closed and not done that this batch had better stay open: its thread asks
         * before each launch. */
        take_back(slot);
        return false;
    }
    if (closing->launches == 0) {
        drop_empty(slot);
        return false;
    }
    slot->marking = true;
    closing->open = slot->batch;
    closing->used_ns = es_submitted_in(slot);
    closing->batch = describe(closing, es_now_ns());
    if ((closing->open.guessed || es_submitted_guessed_by_others(slot)) && es_backlog.guessed_ns < closing->batch.work.mark_ns)
        es_backlog.guessed_ns = closing->batch.work.mark_ns;
    closing->batch.work.known_ns =
        closing->batch.work.mark_ns > es_backlog.guessed_ns ? closing->batch.work.mark_ns - es_backlog.guessed_ns : 0;
    return true;
}

/* It stands in the queue, once for each stream that was marked. */
ES_LOCKED(es_state_lock) static void push_marked(struct closing *closing) {
    const struct es_batch_open *open = &closing->open;
    struct es_closed *batch = &closing->batch;

    for (int i = 0; i < ES_STREAMS; i++) {
        if (closing->ends[i].event == NULL)
            continue;
        if (open->streams >> i == 1)
            batch->queued =
                es_queued_with(open->queued, closing->used_ns, closing->launches, __builtin_popcountll(open->streams));
        batch->end = closing->ends[i].event;
        batch->context = closing->ends[i].context;
        batch->stream = i;
        es_closed_push(*batch);
        /* The first stands for the batch; it has ended when the others have too. */
        batch->start = NULL;
        batch->awaited_ns = 0;
        batch->work.cost_ns = 0;
    }
    if (batch->end == NULL)
        es_closed_push(*batch);
}

/* Its markers are recorded. */
ES_LOCKED(es_state_lock) static void end_close(struct closing *closing) {
    const struct es_batch_open *open = &closing->open;
    struct es_slot *slot = closing->slot;
    struct es_work *work = &closing->batch.work;

    work->left = grant_is_over(open->grant);
    work->exact = open->stopped && !closing->foreign && es_stop_holds(slot);
    work->lone = work->exact && open->others_ns != UINT64_MAX && es_submitted_by_others(slot) == open->others_ns;
    push_marked(closing);
    es_timeline_settle(&es_backlog.timeline, closing->used_ns);
    slot->batch.settled += closing->launches;
    slot->marking = false;
    es_batch_clear(slot);
    es_hint_write(es_now_ns());
}

static void close_batch(struct es_slot *slot, bool foreign) {
    struct closing closing;
    bool marks;

    closing.slot = slot;
    closing.foreign = foreign;
    es_lock_take(&es_state_lock);
    marks = begin_close(&closing);
    es_lock_give(&es_state_lock);
    if (!marks)
        return;
    for (int i = 0; i < ES_STREAMS; i++)
        closing.ends[i] = (closing.open.streams >> i & 1) != 0 ? es_marker_record(i, foreign) : (struct es_marker){NULL, -1};
    closing.batch.work.marked_ns = es_now_ns();
    es_lock_take(&es_state_lock);
    end_close(&closing);
    es_lock_give(&es_state_lock);
}

void es_batch_close(struct es_slot *slot, bool foreign) {
    close_batch(slot, foreign);
    es_stop_end(slot);
}

bool es_batches_close_all(void) {
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

void es_batches_forget(int context) {
    es_ends_forget(context);
    for (size_t i = 0; i < es_slots_used(); i++) {
        if (es_slot_at(i)->batch.start_context == context)
            es_slot_at(i)->batch.start = NULL;
    }
}
