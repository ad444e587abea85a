#include "markers/collect.h"

#include "backlog/backlog.h"
#include "backlog/closed.h"
#include "base/state.h"
#include "core/tools/clock.h"
#include "driver/contexts.h"
#include "driver/markers.h"
#include "driver/streams.h"
#include "markers/ends.h"

static bool collecting; /* atomic: one thread at a time asks the driver about the head */

/* A driver that is broken for good may tell nothing of any marker: its program is not held up for longer than this. */
enum { UNTOLD_MS = 10 * 1000 };

static uint64_t untold_since_ns; /* by who collects: since when that is so; 0: it is not */

static bool by_estimate(const struct es_closed *batch) { return es_now_ns() >= batch->work.opened_ns + batch->work.cost_ns; }

static bool ended(const struct es_closed *batch) {
    enum es_reached reached;

    if (batch->end == NULL)
        return by_estimate(batch);
    reached = es_marker_reached(batch->end);
    if (reached == ES_REACHED_UNTOLD) {
        if (untold_since_ns == 0)
            untold_since_ns = es_now_ns();
        return es_now_ns() - untold_since_ns >= UNTOLD_MS * ES_MS;
    }
    untold_since_ns = 0;
    return reached == ES_REACHED || (reached == ES_REACHED_NEVER && by_estimate(batch));
}

/* The oldest of a stream that is not asked about yet, behind the head and beside it. -1: there is none. */
ES_LOCKED(es_state_lock) static int beside_head(uint64_t asked) {
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

/* A look at a closed batch: what stood in its place, and when it ended, where it has. */
struct look {
    struct es_closed batch;
    CUcontext owner;
    CUevent before; /* the latest end that was counted, in its context */
    bool held;      /* its context, which has to be there while the driver is asked about its markers */
    uint64_t now_ns;
    int64_t start_ns, after_ns; /* from its start, and from `before`, to its end */
};

ES_LOCKED(es_state_lock) static struct look look_at(uint32_t place) {
    struct look look = {.batch = *es_closed_at(place), .start_ns = ES_UNTOLD, .after_ns = ES_UNTOLD};

    look.held = look.batch.end != NULL && es_context_hold(look.batch.context);
    look.owner = es_context_handle(look.batch.context);
    look.before = es_ends_latest(look.batch.context);
    return look;
}

ES_LOCKED(es_state_lock) static void look_away(const struct look *look) {
    if (look->held)
        es_context_drop(look->batch.context);
}

/* Whether it has ended, without the lock. */
static bool is_over(struct look *look) {
    const bool gone = look->batch.end != NULL && !look->held; /* the context ended, and with it the marker */
    const bool over = gone || ended(&look->batch);
    struct es_entered entered;

    /* Not before: a thread that is put aside in between would take an end for earlier than it was. */
    look->now_ns = es_now_ns();
    if (!over || !look->held)
        return over;
    entered = es_context_enter(look->owner);
    if (entered.current) {
        if (look->batch.start_context == look->batch.context)
            look->start_ns = es_marker_elapsed_ns(look->batch.start, look->batch.end);
        look->after_ns = es_marker_elapsed_ns(look->before, look->batch.end);
    }
    es_context_leave(entered);
    return true;
}

/* When its stream came to the end that was just seen. */
static uint64_t stamp_ns(const struct look *look) {
    const uint64_t then_ns = es_ends_latest_ns() + (uint64_t)look->after_ns;

    return look->after_ns != ES_UNTOLD && then_ns < look->now_ns ? then_ns : look->now_ns;
}

/* By the thread that collects: passes over what has ended in other streams than the head's. True where that is any. */
static bool collect_beside(void) {
    uint64_t asked = 0;
    bool any = false;

    for (;;) {
        struct look look;
        struct es_closed *there;
        bool over;
        int place;

        es_lock_take(&es_state_lock);
        place = beside_head(asked);
        if (place >= 0)
            look = look_at((uint32_t)place);
        es_lock_give(&es_state_lock);
        if (place < 0)
            return any;
        look.batch.start = NULL;
        /* What a context's end took with it is for the head to pass over. */
        over = is_over(&look) && (look.held || look.batch.end == NULL);
        es_lock_take(&es_state_lock);
        look_away(&look);
        there = es_closed_at((uint32_t)place);
        /* Meanwhile somebody may have waited for it, or its place become another stream's. */
        if (over && !there->over && there->stream == look.batch.stream)
            es_ends_pass_over(there, stamp_ns(&look));
        es_lock_give(&es_state_lock);
        if (over)
            any = true;
        else
            asked |= UINT64_C(1) << look.batch.stream;
    }
}

/* By the thread that collects: counts the head where it has ended; false where it has not, or there is none. */
static bool collect_head(void) {
    struct look look;
    bool any, over;

    es_lock_take(&es_state_lock);
    any = es_closed_count() != 0;
    if (any)
        look = look_at(0);
    es_lock_give(&es_state_lock);
    if (!any)
        return false;
    over = is_over(&look);
    es_lock_take(&es_state_lock);
    look_away(&look);
    if (over)
        es_ends_head(look.start_ns, look.after_ns, look.now_ns);
    es_lock_give(&es_state_lock);
    return over;
}

bool es_collect(void) {
    struct es_quiet quiet;
    bool progress = false;

    es_locks_hold();
    if (__atomic_exchange_n(&collecting, true, __ATOMIC_ACQUIRE)) {
        es_locks_drop();
        return false;
    }
    quiet = es_quiet_begin();
    while (collect_head())
        progress = true;
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

bool es_collect_await(void) {
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
        if (!es_marker_await((struct es_marker){head.end, head.context}, owner))
            es_progress_wait(es_progress_seen(), ES_MS);
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

ES_UNCHECKED void es_collect_reset(void) {
    collecting = false;
    untold_since_ns = 0;
}
