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

/* How long a batch's end, which was just seen to be done, was after its start and after `before`, in its context, which is
 * held. */
static void measure(const struct es_closed *batch, CUcontext owner, CUevent before, int64_t *start_ns, int64_t *after_ns) {
    const struct es_entered entered = es_context_enter(owner);

    if (entered.current) {
        *start_ns = batch->start_context == batch->context ? es_marker_elapsed_ns(batch->start, batch->end) : ES_UNTOLD;
        *after_ns = es_marker_elapsed_ns(before, batch->end);
    }
    es_context_leave(entered);
}

/* When the stream came to a marker that was just seen to be done, so long after the latest end that was counted. */
static uint64_t stamp_ns(int64_t after_ns) {
    const uint64_t now_ns = es_now_ns(), then_ns = es_ends_latest_ns() + (uint64_t)after_ns;

    return after_ns != ES_UNTOLD && then_ns < now_ns ? then_ns : now_ns;
}

/* By the thread that collects: passes over what has ended in other streams than the head's. True where that is any. */
static bool collect_beside(void) {
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
        before = es_ends_latest(batch.context);
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
            es_ends_pass_over(es_closed_at((uint32_t)place), ended_ns);
        es_lock_give(&es_state_lock);
        any = any || over;
        if (!over)
            asked |= UINT64_C(1) << batch.stream;
    }
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
        before = es_ends_latest(head.context);
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
            es_ends_head(start_ns, after_ns, now_ns);
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
