#include "backlog/submitted.h"

#include "backlog/backlog.h"
#include "backlog/closed.h"

static int64_t left_ns(const struct es_slot *slot) { return __atomic_load_n(&slot->left_ns, __ATOMIC_RELAXED); }

uint64_t es_submitted_in(const struct es_slot *slot) {
    /* left_ns goes below zero by the last launch; only an open batch has drawn something. */
    return slot->batch.opened_ns == 0 ? 0 : (uint64_t)((int64_t)slot->batch.drawn_ns - left_ns(slot));
}

ES_LOCKED(es_state_lock) static uint64_t open_ns(void) {
    uint64_t all_ns = 0;

    for (size_t i = 0; i < es_slots_used(); i++)
        all_ns += es_submitted_in(es_slot_at(i));
    return all_ns;
}

uint64_t es_submitted_ns(void) { return es_backlog.timeline.settled_ns + open_ns(); }

uint64_t es_submitted_by_others(const struct es_slot *slot) {
    for (size_t i = 0; i < es_slots_used(); i++) {
        if (es_slot_at(i) != slot && __atomic_load_n(&es_slot_at(i)->busy, __ATOMIC_ACQUIRE) != 0)
            return UINT64_MAX;
    }
    return es_submitted_ns() - es_submitted_in(slot);
}

uint64_t es_own_queued_ns(uint64_t now_ns) {
    const uint64_t submitted_ns = open_ns(), over_ns = es_closed_over_ns();
    uint64_t queued_ns;

    es_timeline_look(&es_backlog.timeline, submitted_ns, now_ns);
    queued_ns = es_timeline_queued_ns(&es_backlog.timeline, submitted_ns, now_ns);
    return queued_ns > over_ns ? queued_ns - over_ns : 0;
}

uint64_t es_queued_ns(uint64_t now_ns) { return es_overlap_together_ns(&es_backlog.overlap, es_own_queued_ns(now_ns)); }

uint64_t es_streams_busy(void) {
    uint64_t streams = es_closed_streams();

    for (size_t i = 0; i < es_slots_used(); i++)
        streams |= es_slot_at(i)->batch.streams;
    return streams;
}

/* Of what launches take by their estimates, what the device is busy with for certain. */
static uint64_t for_certain_ns(uint64_t ns, uint64_t launches) {
    const uint64_t host_ns = es_costs_host_ns(&es_backlog.costs, launches);

    return ns > host_ns ? ns - host_ns : 0;
}

/* In all open batches, which may be in any stream. */
static uint64_t launches_open(void) {
    uint64_t launches = 0;

    for (size_t i = 0; i < es_slots_used(); i++) {
        const struct es_slot *slot = es_slot_at(i);

        if (slot->batch.opened_ns != 0)
            launches += __atomic_load_n(&slot->launches, __ATOMIC_RELAXED) - slot->batch.settled;
    }
    return launches;
}

struct es_queued es_queued_beside(int stream, uint64_t now_ns) {
    struct es_queued queued = {0, 0};
    struct es_launches launches;
    uint64_t all_ns, ahead_ns;

    if ((es_streams_busy() & ~(UINT64_C(1) << stream)) == 0)
        return queued;
    launches = es_closed_launches(stream);
    all_ns = es_own_queued_ns(now_ns);
    ahead_ns = es_closed_in_stream_ns(stream);
    queued.ahead_ns = for_certain_ns(ahead_ns, launches.in_stream);
    if (all_ns > ahead_ns)
        queued.beside_ns = for_certain_ns(all_ns - ahead_ns, launches.beside + launches_open());
    return queued;
}

struct es_queued es_queued_with(struct es_queued queued, uint64_t used_ns, uint64_t launches, int streams) {
    const uint64_t each_ns = used_ns / (uint64_t)streams;

    return (struct es_queued){queued.beside_ns + for_certain_ns(used_ns - each_ns, launches),
                              queued.ahead_ns + for_certain_ns(each_ns, launches)};
}

struct es_unspent es_unspent(uint32_t word) {
    struct es_unspent unspent = {0, 0};

    for (size_t i = 0; i < es_slots_used(); i++) {
        const struct es_slot *slot = es_slot_at(i);
        const int64_t left = left_ns(slot);

        if (slot->batch.opened_ns == 0 || left <= 0 || __atomic_load_n(&slot->word, __ATOMIC_RELAXED) != word)
            continue;
        unspent.ns += (uint64_t)left;
        unspent.threads++;
    }
    return unspent;
}

bool es_submitted_drained(void) {
    if (es_closed_count() > 0)
        return false;
    for (size_t i = 0; i < es_slots_used(); i++) {
        const struct es_slot *slot = es_slot_at(i);

        if (slot->marking || __atomic_load_n(&slot->busy, __ATOMIC_ACQUIRE) != 0 ||
            __atomic_load_n(&slot->launches, __ATOMIC_RELAXED) != slot->batch.settled)
            return false;
    }
    return true;
}

uint64_t es_submitted_launches(void) {
    uint64_t launches = 0;

    for (size_t i = 0; i < es_slots_used(); i++)
        launches += __atomic_load_n(&es_slot_at(i)->launches, __ATOMIC_RELAXED);
    return launches;
}

bool es_submitted_open(uint64_t since_ns) {
    for (size_t i = 0; i < es_slots_used(); i++) {
        const struct es_slot *slot = es_slot_at(i);

        if (!slot->marking && slot->batch.opened_ns <= since_ns &&
            __atomic_load_n(&slot->launches, __ATOMIC_RELAXED) != slot->batch.settled)
            return true;
    }
    return false;
}

bool es_submitted_beside(uint64_t streams) {
    bool any = false;

    for (size_t i = 0; i < es_slots_used(); i++)
        any = any || (es_slot_at(i) != es_slot_self && (es_slot_at(i)->batch.streams & streams) != 0);
    return any;
}

bool es_submitted_guessed_by_others(const struct es_slot *slot) {
    for (size_t i = 0; i < es_slots_used(); i++) {
        if (es_slot_at(i) != slot && es_slot_at(i)->batch.opened_ns != 0 && es_slot_at(i)->batch.guessed)
            return true;
    }
    return false;
}
