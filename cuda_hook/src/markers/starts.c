#include "markers/starts.h"

#include "backlog/backlog.h"
#include "base/state.h"
#include "core/tools/clock.h"
#include "driver/contexts.h"
#include "driver/markers.h"
#include "link/link.h"
#include "threads/keys.h"

/* Whether the device is seen to have come to the start of the thread's batch. */
static bool start_is_reached(const struct es_slot *slot) {
    struct es_quiet quiet;
    CUevent start;
    bool held, reached;
    int context;

    es_lock_take(&es_state_lock);
    start = slot->batch.start;
    context = slot->batch.start_context;
    held = start != NULL && es_context_hold(context);
    es_lock_give(&es_state_lock);
    if (!held)
        return true;
    quiet = es_quiet_begin();
    reached = es_marker_reached(start) == ES_REACHED;
    es_quiet_end(quiet);
    es_lock_take(&es_state_lock);
    es_context_drop(context);
    es_lock_give(&es_state_lock);
    return reached;
}

void es_start_followed(struct es_slot *slot) {
    const uint64_t now_ns = es_now_ns(), passed_ns = now_ns - slot->batch.started_ns;
    /* It has, but for the first batch of a grant, and behind a function of the host. */
    const bool asks = slot->batch.first || slot->batch.held || slot->batch.anew;
    const bool reached = !asks || start_is_reached(slot), over = reached || (!slot->batch.first && !slot->batch.held);

    es_lock_take(&es_state_lock);
    slot->batch.started_ns = 0;
    slot->batch.anew = slot->batch.anew && reached;
    if (slot->batch.beside) {
        /* Before the launch others run, or nobody: how long for nobody knows, so nothing is taken off. */
        slot->batch.behind_ns = 0;
        if (!over && !slot->batch.held && !es_link_others())
            slot->batch.awaited_ns = now_ns + es_link_before_ns(now_ns);
        es_lock_give(&es_state_lock);
        return;
    }
    slot->batch.reached = over;
    if (!over) {
        /* Others run, or the device changes from their context to this one: the launch is right behind the start. */
        slot->batch.behind_ns = 0;
        slot->batch.awaited_ns = slot->batch.held ? 0 : now_ns + es_link_before_ns(now_ns);
        es_lock_give(&es_state_lock);
        return;
    }
    if (slot->batch.brief) {
        es_marker_give(slot->batch.start_context, slot->batch.start);
        slot->batch.start = NULL;
        slot->batch.fresh = true;
        es_lock_give(&es_state_lock);
        return;
    }
    /* A thread that took longer than usual was put aside, perhaps after it had launched. */
    if (!es_costs_call(&es_backlog.costs, slot->batch.key, passed_ns, es_key_is_copy(slot->batch.key)))
        slot->batch.unsure_ns = passed_ns;
    if (passed_ns > slot->batch.behind_ns)
        slot->batch.behind_ns = passed_ns;
    es_lock_give(&es_state_lock);
}
