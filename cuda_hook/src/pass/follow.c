#include "pass/follow.h"

#include "backlog/backlog.h"
#include "link/link.h"

void es_follow_share(struct es_slot *slot, uint64_t key, struct es_cost *cost, uint64_t cost_ns) {
    if (cost_ns > slot->batch.longest_ns)
        slot->batch.longest_ns = cost_ns;
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
static bool join(struct es_slot *slot, uint64_t key, CUstream stream) {
    struct es_pass *pass = es_passes_find(slot->passes, key, stream);
    const bool held = es_passes_holds(slot->passes, pass, key, stream);
    struct es_cost *cost = NULL;
    int64_t cost_ns = pass->cost_ns, left_ns;

    if (!held) {
        if (!es_passes_know(slot->passes, stream))
            return false;
        cost = es_costs_look(&es_backlog.costs, key);
        cost_ns = es_costs_known_ns(&es_backlog.costs, cost, key, es_link_others());
        if (cost_ns == 0 || es_costs_marked_singly((uint64_t)cost_ns))
            return false;
    }
    left_ns = __atomic_load_n(&slot->left_ns, __ATOMIC_RELAXED) - cost_ns;
    if (left_ns < 0)
        return false;
    if (!held) {
        es_follow_share(slot, key, cost, (uint64_t)cost_ns);
        es_passes_put(slot->passes, pass, key, stream, cost_ns);
    }
    __atomic_store_n(&slot->left_ns, left_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->launches, slot->launches + 1, __ATOMIC_RELAXED);
    return true;
}

bool es_follow(struct es_slot *slot, uint64_t key, CUstream stream) {
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
