#include "pass/places.h"

#include "backlog/backlog.h"
#include "backlog/closed.h"
#include "backlog/drawing.h"
#include "backlog/submitted.h"
#include "base/log.h"
#include "base/state.h"
#include "core/tools/clock.h"
#include "markers/batches.h"
#include "markers/collect.h"
#include "pass/grant.h"
#include "threads/slots.h"

enum { PLACE_LOOK_NS = 50 * 1000 }; /* where threads within the driver hold all places: how soon one is noticed */

/* A thread that is put aside while it looks what has ended keeps all others from it for as long. */
enum { UNSEEN_NS = 1000 * 1000 * 1000 };

static bool uncounted_said; /* atomic */

/* Is there none, and could one be had by marking what is open? */
static bool wanted(int number) {
    bool full;

    if (number != ES_STREAM_LATER)
        return false;
    es_lock_take(&es_state_lock);
    full = es_closed_full();
    es_lock_give(&es_state_lock);
    return !full;
}

int es_place_of(CUstream stream) {
    int number = es_stream_number(stream);

    if (wanted(number) && es_slot_self != NULL) {
        es_batch_close(es_slot_self, false);
        number = es_stream_number(stream);
    }
    if (wanted(number) && es_grant_pause()) {
        (void)es_batches_close_all();
        es_grant_resume();
        number = es_stream_number(stream);
    }
    return number;
}

bool es_place_give_up(struct es_patience *patience, uint64_t key) {
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
    if (waited_ns > (looked ? ES_OVERDUE_NS : UNSEEN_NS)) {
        /* What runs may wait for what comes. */
        wait_ns = es_draw_singly_ns(es_expected_ns(es_costs_find(&es_backlog.costs, key)), now_ns);
    } else if (es_closed_full() && waited_ns <= ES_OVERDUE_NS) {
        /* Until there is room for a batch, a quarter of all. Not woken as each marker is done: that may be every few
         * microseconds. */
        wait_ns = es_queued_ns(now_ns) / (ES_CLOSED / ES_STREAMS);
        if (wait_ns < PLACE_LOOK_NS)
            wait_ns = PLACE_LOOK_NS;
        if (wait_ns > ES_OVERDUE_NS - waited_ns)
            wait_ns = ES_OVERDUE_NS - waited_ns + 1;
    }
    es_lock_give(&es_state_lock);
    if (wait_ns > 0)
        es_progress_wait(progress, wait_ns);
    else if (!__atomic_exchange_n(&uncounted_said, true, __ATOMIC_RELAXED))
        es_log("more streams (%d) are busy at once than are told apart, and none ends: some launches are not counted",
               ES_STREAMS);
    return wait_ns == 0;
}
