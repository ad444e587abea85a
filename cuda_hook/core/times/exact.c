/* Times between two markers of which the host had no part: which are wanted, and for how long they are believed. */

#include "core/times/costs.h"

/* Times that others may have made longer agree, too, where they made them equally longer: one is wanted that is its own. */
static bool wants_exact(const struct es_cost *entry) {
    return !entry->varies && (entry->exact < ES_COSTS_EXACT || entry->mixed) && entry->tries < ES_COSTS_TRIES;
}

bool es_costs_vague(const struct es_costs *costs, const struct es_cost *entry) {
    return entry->samples > 0 && !entry->varies && entry->pending_since_ns == 0 && es_costs_timed_exactly(entry) &&
           (wants_exact(entry) || es_costs_due(costs, entry));
}

bool es_costs_disturbed(const struct es_cost *entry) { return wants_exact(entry) && entry->tries >= ES_COSTS_EXACT; }

void es_costs_ask(struct es_cost *entry) {
    if (entry->asks == 0)
        return;
    /* It takes longer than it seemed to, or has been timed otherwise meanwhile. */
    if (!wants_exact(entry) || !es_costs_timed_exactly(entry))
        ES_COST_SET(entry->asks, 0);
    else if (entry->pending_since_ns == 0)
        ES_COST_SET(entry->asks, entry->asks - 1);
}

void es_costs_put_off(struct es_costs *costs, struct es_cost *entry) {
    if (!es_costs_due(costs, entry))
        return;
    ES_COST_SET(entry->missed, 0);
    es_costs_count(costs, true);
}

/* The first exact time counts for more than all others, and one in which no other ran for more than those in which some may have;
 * of these the shortest does. A time that no other has borne out yet had a gap in it where the next one is shorter. */
static bool takes_their_place(const struct es_cost *entry, uint64_t ns, bool alone) {
    const bool had_gap = alone && entry->exact == 1 && ns + es_costs_apart_ns(ns) < entry->ns;

    return entry->exact == 0 || had_gap || (entry->mixed && (alone || ns + ES_COSTS_LEAST_NS < entry->ns));
}

static void note_exact(struct es_cost *entry, uint64_t ns, bool first) {
    const uint64_t usual_ns = entry->exact_ns;

    if (first || usual_ns == 0 || ns + es_costs_apart_ns(ns) < usual_ns)
        ES_COST_SET(entry->exact_ns, ns);
    else if (ns <= usual_ns + es_costs_apart_ns(usual_ns))
        ES_COST_SET(entry->exact_ns, (uint64_t)((int64_t)usual_ns + ((int64_t)ns - (int64_t)usual_ns) / 2));
}

/* As long as that it is in any case, whatever of its time is the host's. */
static bool is_long(const struct es_costs *costs, const struct es_cost *entry) {
    return entry->ns >= ES_COSTS_SHORT_NS + es_costs_host_ns(costs, 1);
}

/* Is an exact time so much shorter than the mean, or so long, that it says no more than any other? */
static bool is_single(const struct es_costs *costs, const struct es_cost *entry, uint64_t ns) {
    return entry->exact == 0 && ((is_long(costs, entry) && ns < entry->ns / 2) || ns >= ES_COSTS_EXACT_MOST_NS);
}

/* The one before was the same. */
static bool is_borne_out(struct es_cost *entry, uint64_t ns) {
    const uint64_t before_ns = entry->single_ns;

    entry->single_ns = ns;
    return before_ns != 0 && ns <= before_ns + es_costs_apart_ns(before_ns) && before_ns <= ns + es_costs_apart_ns(ns);
}

void es_costs_learn_exact(struct es_costs *costs, uint64_t key, uint64_t ns, bool alone) {
    struct es_cost *entry = es_costs_find(costs, key);
    const bool first = takes_their_place(entry, ns, alone);
    uint64_t before_ns, off_ns;
    bool agree, borne_out = false;

    /* No part of the host's makes that difference: it takes now so long, now so long, or others were in the first times. One time
     * is no more exact than the mean, a second one that agrees with it is. */
    if (alone && !entry->varies && is_single(costs, entry, ns)) {
        borne_out = is_borne_out(entry, ns);
        if (!borne_out) {
            es_costs_learn(costs, key, ns);
            return;
        }
    }
    if (entry->varies || (!alone && (ns > entry->ns + ES_COSTS_LEAST_NS || is_long(costs, entry)))) {
        ES_COST_SET(entry->missed, 0);
        entry->pending_since_ns = 0;
        return;
    }
    if (first) {
        entry->exact = 0;
        ES_COST_SET(entry->mixed, !alone);
        entry->spread_ns = 0;
        if (ns < ES_COSTS_EXACT_MOST_NS || borne_out)
            ES_COST_SET(entry->samples, 0);
    }
    before_ns = first ? ns : entry->ns;
    off_ns = ns > before_ns ? ns - before_ns : before_ns - ns;
    entry->spread_ns = (uint64_t)((int64_t)entry->spread_ns + ((int64_t)off_ns - (int64_t)entry->spread_ns) / 4);
    agree = entry->spread_ns <= before_ns / ES_COSTS_VARY + ES_COSTS_LEAST_NS;
    es_costs_learn(costs, key, ns);
    note_exact(entry, ns < ES_COSTS_LEAST_NS ? ES_COSTS_LEAST_NS : ns, first);
    entry->varies = !agree;
    if (agree && entry->ns < ES_COSTS_EXACT_MOST_NS) {
        entry->exact += entry->exact < UINT32_MAX;
    } else {
        entry->exact = 0;
        ES_COST_SET(entry->exact_ns, 0);
    }
    if (!wants_exact(entry))
        ES_COST_SET(entry->asks, 0);
    ES_COST_SET(entry->sure,
                entry->exact >= ES_COSTS_EXACT && entry->spread_ns <= entry->ns / ES_COSTS_SPREAD + ES_COSTS_LEAST_NS / 2);
}

static void give_up(struct es_cost *entry) {
    entry->varies = true;
    entry->exact = 0;
    ES_COST_SET(entry->exact_ns, 0);
    ES_COST_SET(entry->sure, false);
}

/* What took longer than its exact times say may have been another's, or it takes longer than it did. */
static void time_anew(struct es_cost *entry) {
    if (entry->anew >= ES_COSTS_ANEW) {
        give_up(entry);
        return;
    }
    entry->anew++;
    entry->exact = entry->tries = 0;
    ES_COST_SET(entry->mixed, false);
    ES_COST_SET(entry->exact_ns, 0);
    ES_COST_SET(entry->sure, false);
    ES_COST_SET(entry->asks, ES_COSTS_ASKS);
}

void es_costs_give_up(struct es_costs *costs, uint64_t key) { give_up(es_costs_find(costs, key)); }

void es_costs_judge(struct es_costs *costs, bool longer) {
    if (!longer) {
        costs->doubts -= costs->doubts != 0;
        return;
    }
    costs->doubts += ES_COSTS_DOUBT;
    if (costs->doubts < ES_COSTS_DOUBTS)
        return;
    costs->doubts = 0;
    for (size_t i = 0; i < ES_COSTS; i++) {
        if (costs->entries[i].exact != 0)
            time_anew(&costs->entries[i]);
    }
}

void es_costs_assume(struct es_cost *entry, uint64_t ns) {
    ES_COST_SET(entry->ns, ns);
    ES_COST_SET(entry->exact_ns, ns);
    entry->exact = ES_COSTS_EXACT;
    entry->tries = ES_COSTS_TRIES;
    ES_COST_SET(entry->samples, ES_COSTS_WEIGHT);
    ES_COST_SET(entry->sure, true);
}
