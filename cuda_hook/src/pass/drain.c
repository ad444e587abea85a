#include "pass/drain.h"

#include "backlog/submitted.h"
#include "base/barrier.h"
#include "base/state.h"
#include "core/tools/clock.h"
#include "link/link.h"
#include "link/session.h"
#include "markers/batches.h"
#include "markers/collect.h"
#include "pass/grant.h"
#include "usage/hint.h"

enum {
    BUSY_LOOK_NS = 50 * 1000,       /* while a thread is within a submitting call of the driver */
    FORETELL_NS = 50 * 1000,        /* a drain so near is not worth foretelling */
    FORETELL_ERROR_NS = 200 * 1000, /* most that an estimate is corrected by */
    FORETELL_SOONER_NS = 25 * 1000, /* an end that comes sooner by less is not worth a record, which costs the manager as much */
    FORETELL_LATER_NS = 100 * 1000, /* an end that comes later by less is not either: the device is busy until then */
};

/* While what was queued drains: tells the manager when it will have, so that it can open the next gate in time.
 * `told_ns` is what it was told last. What the hint said as the grant was called back does most of it: where that, too,
 * says nothing, the median hand-over between two clients that saturate the device takes 42 to 50 us longer on the virtual
 * clock, 104 to 114 at the pace `workstation`, 158 to 182 at `jetson`. What this adds is less: over twelve mixes of
 * two and three clients at three paces, a hand-over takes 2.6 us on the mean beyond the switch between contexts, 3.4
 * without this, 3.2 without learn_end, 5.3 without both; the most in one mix 5.7, 9.4, 8.4 and 19.1. */
ES_LOCKED(es_state_lock) static void foretell(uint32_t number, uint64_t *told_ns) {
    const uint64_t now_ns = es_now_ns();
    const uint64_t queued_ns = es_queued_ns(now_ns);
    const uint64_t end_ns = now_ns + queued_ns + (uint64_t)es_hint_error_ns;
    const bool moved = end_ns + FORETELL_SOONER_NS < *told_ns || end_ns > *told_ns + FORETELL_LATER_NS;
    struct es_draining record = {{ES_DRAINING, sizeof(record), number}, end_ns, 0};

    /* Too near, and the manager would do for this what it has to do for the RELEASE. */
    if (end_ns > now_ns + FORETELL_NS && moved && es_session_send(&record))
        *told_ns = end_ns;
}

/* What was foretold has come. A drain that ends before its time does so each time (a burst was timed while the device was
 * still another's, say), so the next one is foretold earlier. That one is seen late says nothing: this thread may have
 * been late itself; then the correction fades. What it is worth: see foretell. */
ES_LOCKED(es_state_lock) static void learn_end(uint64_t told_ns, uint64_t now_ns) {
    const int64_t error_ns = (int64_t)(now_ns - told_ns);

    if (told_ns == 0 || error_ns < -FORETELL_ERROR_NS)
        return;
    if (error_ns < 0)
        es_hint_error_ns += error_ns / 4;
    else
        es_hint_error_ns -= es_hint_error_ns / 8;
    if (es_hint_error_ns < -FORETELL_ERROR_NS)
        es_hint_error_ns = -FORETELL_ERROR_NS;
}

/* Beside others nobody is granted ahead of time, and what siblings have queued is not known here: then nothing is
 * foretold, and nothing learned from when the end comes. */
ES_LOCKED(es_state_lock) static bool foretells(void) { return !es_link_mixed(es_link_siblings()) && !es_hint_unseen(); }

void es_drain_give_back(uint32_t number, bool sleeps) {
    uint64_t told_ns = 0;

    es_lock_take(&es_state_lock);
    if (es_link.hint != NULL && foretells())
        told_ns = __atomic_load_n(&es_link.hint->ends_at_ns, __ATOMIC_RELAXED);
    es_lock_give(&es_state_lock);
    es_barrier_everywhere();
    while (es_mode_now() == ES_JOINED) {
        const bool all = es_batches_close_all();
        uint64_t now_ns;
        bool drained;

        es_lock_take(&es_state_lock);
        drained = all && es_submitted_drained();
        now_ns = es_now_ns();
        if (drained) {
            learn_end(told_ns, now_ns);
            es_link_drained(now_ns);
        }
        if (drained &&
            (es_grant_release(number, told_ns != 0 && told_ns < now_ns + FORETELL_SOONER_NS) || es_mode_now() != ES_JOINED)) {
            es_lock_give(&es_state_lock);
            return;
        }
        if (all && !drained && foretells())
            foretell(number, &told_ns);
        es_lock_give(&es_state_lock);
        if (es_gate_number(es_gate_load(es_link.page)) != number)
            return;
        if (drained || !sleeps || !es_collect_await()) {
            (void)es_collect();
            es_progress_wait(es_progress_seen(), BUSY_LOOK_NS);
        }
    }
}
