#include "markers/waits.h"

#include "backlog/backlog.h"
#include "backlog/closed.h"
#include "backlog/submitted.h"
#include "base/state.h"
#include "core/times/spent.h"
#include "core/tools/clock.h"
#include "driver/markers.h"
#include "link/link.h"
#include "markers/batches.h"
#include "markers/collect.h"
#include "markers/ends.h"
#include "usage/measured.h"
#include "usage/thinks.h"

enum { AWAKE_MOST_NS = 1000 * 1000 }; /* a thread takes no longer to wake as a rule */

/* Bursts that are marked then: as many as the times of some functions take to settle. Simulated: with none three of 100 random
 * programs fall short of their part of the GPU, not one; both others are near the limit. */
enum { DOUBTED = 16 };

/* Was a burst waited for far longer than its launches take, by their times? Then these are wrong. */
ES_LOCKED(es_state_lock) static bool took_longer(const struct es_slot *slot, uint64_t used_ns, uint64_t now_ns) {
    const uint64_t ended_ns = es_ends_latest_ns();
    const uint64_t begun_ns = slot->batch.opened_ns > ended_ns ? slot->batch.opened_ns : ended_ns;
    const uint64_t most_ns = slot->batch.ahead_ns + used_ns + (slot->launches - slot->batch.settled) * ES_APART_MOST_NS;

    return now_ns > begun_ns && now_ns - begun_ns > most_ns + AWAKE_MOST_NS;
}

/* Has all ended? Then the device is idle from now on. */
ES_LOCKED(es_state_lock) static void note_drained(void) {
    if (es_thinks.idle_since_ns != 0 || !es_submitted_drained())
        return;
    es_thinks.idle_since_ns = es_now_ns();
    /* Who is on its way may have a batch already. */
    if (__atomic_load_n(&es_threads.arriving, __ATOMIC_SEQ_CST) == 0)
        es_link_drained(es_thinks.idle_since_ns);
}

void es_waits_returned(struct es_slot *slot, uint64_t streams) {
    es_lock_take(&es_state_lock);
    if (slot->batch.opened_ns != 0 && !slot->marking && (slot->batch.streams & ~streams) == 0) {
        const uint64_t used = es_submitted_in(slot);
        const struct es_queued queued = es_queued_with(slot->batch.queued, used, slot->launches - slot->batch.settled,
                                                       __builtin_popcountll(slot->batch.streams));

        const bool beside = slot->batch.beside || es_link_mixed(slot->batch.siblings);
        const uint64_t now_ns = es_now_ns();

        if (queued.beside_ns != 0 && !beside)
            es_overlap_judge(&es_backlog.overlap, queued, now_ns - slot->batch.opened_ns);
        /* What ran beside other streams ran in a time that is counted as theirs. */
        if (!es_backlog.overlap.seen || (es_streams_busy() & ~slot->batch.streams) == 0)
            es_ends_waited(used, now_ns, beside);
        es_timeline_settle(&es_backlog.timeline, used);
        es_backlog.over_ns += used;
        es_measured_burst(used);
        if (!beside && !es_backlog.overlap.seen && took_longer(slot, used, now_ns))
            es_measured.doubted = DOUBTED;
        es_marker_give(slot->batch.start_context, slot->batch.start);
        if (!slot->batch.shared && (slot->batch.alone || slot->batch.amid))
            es_costs_miss(&es_backlog.costs, slot->batch.key, slot->batch.amid);
        slot->batch.settled = slot->launches;
        es_batch_clear(slot);
    }
    es_lock_give(&es_state_lock);
    es_waits_look(streams);
}

void es_waits_look(uint64_t streams) {
    bool collect;

    es_lock_take(&es_state_lock);
    es_backlog.waits++;
    collect = es_closed_count() > 0;
    es_lock_give(&es_state_lock);
    if (collect)
        (void)es_collect();
    es_lock_take(&es_state_lock);
    if (es_backlog.overlap.seen)
        es_ends_over(streams, es_now_ns());
    note_drained();
    es_lock_give(&es_state_lock);
}
