#include "core/times/costs.h"

/* Who looks without the lock sees each field whole. What it read is of one key where that stands there before and after:
 * whoever sees anything of a later one sees the key gone, too. */
#define GET(field) __atomic_load_n(&(field), __ATOMIC_ACQUIRE)
#define SET(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELEASE)

/* Fibonacci hashing: the upper bits of a product with 2^64 / golden ratio. */
static size_t place_of(uint64_t key, uint64_t probe) { return ((key * UINT64_C(0x9E3779B97F4A7C15) >> 32) + probe) % ES_COSTS; }

/* The place of another key becomes this one's. */
static void replace(struct es_cost *entry, uint64_t key) {
    SET(entry->key, 0);
    SET(entry->ns, 0);
    entry->most_ns = 0;
    entry->clean = false;
    entry->exact = 0;
    entry->tries = 0;
    SET(entry->asks, 0);
    SET(entry->mixed, false);
    entry->spread_ns = 0;
    SET(entry->exact_ns, 0);
    SET(entry->sure, false);
    entry->varies = false;
    entry->provisional = false;
    SET(entry->samples, 0);
    SET(entry->missed, 0);
    entry->pending_since_ns = 0;
    entry->call_ns = 0;
    SET(entry->beside_ns, 0);
    SET(entry->besides, 0);
    SET(entry->key, key);
}

struct es_cost *es_costs_find(struct es_costs *costs, uint64_t key) {
    struct es_cost *least = NULL;

    for (uint64_t probe = 0; probe < ES_COSTS_PROBES; probe++) {
        struct es_cost *entry = &costs->entries[place_of(key, probe)];

        if (entry->key == key)
            return entry;
        if (least == NULL || entry->samples < least->samples)
            least = entry;
        if (entry->key == 0)
            break;
    }
    replace(least, key);
    return least;
}

struct es_cost *es_costs_look(struct es_costs *costs, uint64_t key) {
    for (uint64_t probe = 0; probe < ES_COSTS_PROBES; probe++) {
        struct es_cost *entry = &costs->entries[place_of(key, probe)];
        const uint64_t there = GET(entry->key);

        if (there == key)
            return entry;
        if (there == 0)
            break;
    }
    return NULL;
}

bool es_costs_due(const struct es_costs *costs, const struct es_cost *entry) {
    const bool sure = GET(entry->sure) && !GET(entry->mixed);
    const uint32_t missed = GET(entry->missed), stale = sure ? ES_COSTS_SURE_STALE : ES_COSTS_STALE;

    return missed > stale && GET(costs->batches) >= ES_COSTS_APART && missed >= GET(costs->most_missed);
}

uint64_t es_costs_usual_ns(const struct es_cost *entry, bool beside) {
    const uint64_t exact_ns = beside ? GET(entry->exact_ns) : 0, ns = exact_ns != 0 ? exact_ns : GET(entry->ns);
    const uint64_t most_ns = beside && GET(entry->besides) >= ES_COSTS_WEIGHT ? GET(entry->beside_ns) : ns;

    return most_ns < ns ? most_ns : ns;
}

int64_t es_costs_known_ns(const struct es_costs *costs, const struct es_cost *entry, uint64_t key, bool beside) {
    uint64_t ns;

    if (entry == NULL)
        return 0;
    if (GET(entry->samples) == 0 || GET(entry->asks) != 0 || es_costs_due(costs, entry))
        return 0;
    ns = es_costs_usual_ns(entry, beside);
    return GET(entry->key) == key ? (int64_t)ns : 0;
}

void es_costs_count(struct es_costs *costs, bool again) {
    SET(costs->batches, again ? 0 : GET(costs->batches) + 1);
    if (again)
        SET(costs->most_missed, 0);
}

static void miss(struct es_costs *costs, struct es_cost *entry) {
    const uint32_t missed = GET(entry->missed) + 1;

    SET(entry->missed, missed);
    if (missed > GET(costs->most_missed))
        SET(costs->most_missed, missed);
}

void es_costs_share(struct es_costs *costs, struct es_cost *entry) {
    if (entry != NULL)
        miss(costs, entry);
}

void es_costs_miss(struct es_costs *costs, uint64_t key, int amid) {
    struct es_cost *entry = es_costs_find(costs, key);

    if (amid != 0)
        miss(costs, entry);
    entry->pending_since_ns = 0;
}

/* Downwards at once and upwards slowly: of times that others make longer, and nothing makes shorter. */
static void follow(uint64_t *usual_ns, uint64_t ns) {
    if (*usual_ns == 0 || ns < *usual_ns)
        *usual_ns = ns;
    else
        *usual_ns += (ns < 2 * *usual_ns ? ns - *usual_ns : *usual_ns) / 8;
}

int es_costs_call(struct es_costs *costs, uint64_t key, uint64_t ns, int blocks) {
    struct es_cost *entry = es_costs_find(costs, key);
    const uint64_t usual_ns = entry->call_ns != 0 ? entry->call_ns : costs->call_ns;

    if (!blocks) {
        follow(&entry->call_ns, ns);
        follow(&costs->call_ns, ns);
    }
    return ns <= ES_COSTS_CALL_NS || ns <= 2 * usual_ns;
}

uint64_t es_costs_host_ns(const struct es_costs *costs, uint64_t launches) { return 2 * costs->call_ns * launches; }

/* By how much an exact time may be longer than another one and have no gap in it. */
static uint64_t apart_ns(uint64_t ns) { return ns / ES_COSTS_APART_PART + ES_COSTS_LEAST_NS / 4; }

bool es_costs_note_beside(struct es_costs *costs, uint64_t key, uint64_t most_ns) {
    struct es_cost *entry = es_costs_find(costs, key);

    if (entry->besides == 0 || most_ns + apart_ns(most_ns) < entry->beside_ns) {
        SET(entry->beside_ns, most_ns);
        SET(entry->besides, 1);
    } else if (most_ns <= entry->beside_ns + apart_ns(entry->beside_ns)) {
        SET(entry->besides, entry->besides + (entry->besides < ES_COSTS_BESIDES));
    } else {
        SET(entry->besides, entry->besides > ES_COSTS_WEIGHT ? entry->besides - ES_COSTS_WEIGHT : 0);
    }
    return entry->besides == ES_COSTS_WEIGHT && entry->exact_ns == 0 && entry->beside_ns + apart_ns(entry->beside_ns) < entry->ns;
}

void es_costs_learn_beside(struct es_costs *costs, uint64_t key, uint64_t most_ns) {
    struct es_cost *entry = es_costs_find(costs, key);

    entry->pending_since_ns = 0;
    if (entry->samples != 0 && !entry->provisional)
        return;
    if (most_ns < ES_COSTS_LEAST_NS)
        most_ns = ES_COSTS_LEAST_NS;
    entry->provisional = true;
    if (entry->samples == 0 || most_ns < entry->ns)
        SET(entry->ns, most_ns);
    SET(entry->samples, 1);
    SET(entry->missed, 0);
}

/* What was tried beside others does not count: it may be timed exactly as if it were seen for the first time. */
static void begin_anew(struct es_cost *entry) {
    entry->provisional = false;
    entry->tries = 0;
    SET(entry->samples, 0);
}

/* So much of its time may be the host's that it is short without that. */
static bool seems_short(const struct es_costs *costs, const struct es_cost *entry) {
    return entry->ns < ES_COSTS_SHORT_NS + es_costs_host_ns(costs, 1);
}

void es_costs_learn(struct es_costs *costs, uint64_t key, uint64_t ns) {
    struct es_cost *entry = es_costs_find(costs, key);
    int64_t weight;

    if (entry->provisional)
        begin_anew(entry);
    weight = entry->samples < ES_COSTS_WEIGHT ? (int64_t)entry->samples + 1 : ES_COSTS_WEIGHT;
    if (ns < ES_COSTS_LEAST_NS)
        ns = ES_COSTS_LEAST_NS;
    /* What the first were of was cut short, most likely, by what ran before or beside it. */
    if (entry->samples < ES_COSTS_WEIGHT && ns > ES_COSTS_FAR * entry->ns)
        SET(entry->ns, ns);
    else
        SET(entry->ns, (uint64_t)((int64_t)entry->ns + ((int64_t)ns - (int64_t)entry->ns) / weight));
    if (entry->samples == 0 && entry->tries == 0 && seems_short(costs, entry))
        SET(entry->asks, ES_COSTS_ASKS);
    if (entry->samples < UINT32_MAX)
        SET(entry->samples, entry->samples + 1);
    SET(entry->missed, 0);
    entry->pending_since_ns = 0;
}

/* Times that others may have made longer agree, too, where they made them equally longer: one is wanted that is its own. */
static bool wants_exact(const struct es_cost *entry) {
    return !entry->varies && (entry->exact < ES_COSTS_EXACT || entry->mixed) && entry->tries < ES_COSTS_TRIES;
}

bool es_costs_vague(const struct es_costs *costs, const struct es_cost *entry) {
    return entry->samples > 0 && !entry->varies && entry->pending_since_ns == 0 && seems_short(costs, entry) &&
           (wants_exact(entry) || es_costs_due(costs, entry));
}

void es_costs_ask(struct es_costs *costs, struct es_cost *entry) {
    if (entry->asks == 0)
        return;
    /* It takes longer than it seemed to, or has been timed otherwise meanwhile. */
    if (!wants_exact(entry) || !seems_short(costs, entry))
        SET(entry->asks, 0);
    else if (entry->pending_since_ns == 0)
        SET(entry->asks, entry->asks - 1);
}

void es_costs_put_off(struct es_costs *costs, struct es_cost *entry) {
    if (!es_costs_due(costs, entry))
        return;
    SET(entry->missed, 0);
    es_costs_count(costs, true);
}

/* The first exact time counts for more than all others, and one in which no other ran for more than those in which some may have;
 * of these the shortest does. A time that no other has borne out yet had a gap in it where the next one is shorter. */
static bool takes_their_place(const struct es_cost *entry, uint64_t ns, bool alone) {
    const bool had_gap = alone && entry->exact == 1 && ns + apart_ns(ns) < entry->ns;

    return entry->exact == 0 || had_gap || (entry->mixed && (alone || ns + ES_COSTS_LEAST_NS < entry->ns));
}

static void note_exact(struct es_cost *entry, uint64_t ns, bool first) {
    const uint64_t usual_ns = entry->exact_ns;

    if (first || usual_ns == 0 || ns + apart_ns(ns) < usual_ns)
        SET(entry->exact_ns, ns);
    else if (ns <= usual_ns + apart_ns(usual_ns))
        SET(entry->exact_ns, (uint64_t)((int64_t)usual_ns + ((int64_t)ns - (int64_t)usual_ns) / 2));
}

void es_costs_learn_exact(struct es_costs *costs, uint64_t key, uint64_t ns, bool alone) {
    struct es_cost *entry = es_costs_find(costs, key);
    const bool first = takes_their_place(entry, ns, alone);
    uint64_t before_ns, off_ns;
    bool agree;

    if (!alone && ns > entry->ns + ES_COSTS_LEAST_NS) {
        SET(entry->missed, 0);
        entry->pending_since_ns = 0;
        return;
    }
    if (first) {
        entry->exact = 0;
        SET(entry->mixed, !alone);
        entry->spread_ns = 0;
        if (ns < ES_COSTS_SHORT_NS)
            SET(entry->samples, 0);
    }
    before_ns = first ? ns : entry->ns;
    off_ns = ns > before_ns ? ns - before_ns : before_ns - ns;
    entry->spread_ns = (uint64_t)((int64_t)entry->spread_ns + ((int64_t)off_ns - (int64_t)entry->spread_ns) / 4);
    agree = entry->spread_ns <= before_ns / ES_COSTS_VARY + ES_COSTS_LEAST_NS;
    es_costs_learn(costs, key, ns);
    note_exact(entry, ns < ES_COSTS_LEAST_NS ? ES_COSTS_LEAST_NS : ns, first);
    entry->varies = !agree;
    if (agree && entry->ns < ES_COSTS_SHORT_NS) {
        entry->exact += entry->exact < UINT32_MAX;
    } else {
        entry->exact = 0;
        SET(entry->exact_ns, 0);
    }
    if (!wants_exact(entry))
        SET(entry->asks, 0);
    SET(entry->sure, entry->exact >= ES_COSTS_EXACT && entry->spread_ns <= entry->ns / ES_COSTS_SPREAD + ES_COSTS_LEAST_NS / 2);
}

static void give_up(struct es_cost *entry) {
    entry->varies = true;
    entry->exact = 0;
    SET(entry->exact_ns, 0);
    SET(entry->sure, false);
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
            give_up(&costs->entries[i]);
    }
}

void es_costs_assume(struct es_cost *entry, uint64_t ns) {
    SET(entry->ns, ns);
    SET(entry->exact_ns, ns);
    entry->exact = ES_COSTS_EXACT;
    entry->tries = ES_COSTS_TRIES;
    SET(entry->samples, ES_COSTS_WEIGHT);
    SET(entry->sure, true);
}

bool es_costs_sure(const struct es_cost *entry) { return GET(entry->sure); }

void es_costs_bound(struct es_costs *costs, uint64_t key, uint64_t most_ns) {
    follow(&es_costs_find(costs, key)->most_ns, most_ns);
}

void es_costs_learn_part(struct es_costs *costs, uint64_t key, uint64_t ns, uint64_t most_ns) {
    const struct es_cost *entry = es_costs_find(costs, key);

    if (entry->provisional && entry->ns < most_ns)
        most_ns = entry->ns;
    if (entry->samples > 0 && !entry->provisional)
        es_costs_learn(costs, key, ns);
    else if (entry->missed >= ES_COSTS_GUESSES)
        es_costs_learn(costs, key, most_ns);
    else
        es_costs_miss(costs, key, 1);
}
