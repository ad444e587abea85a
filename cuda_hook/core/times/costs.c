#include "core/times/costs.h"

_Static_assert(offsetof(struct es_cost, most_ns) <= 64, "what a first launch goes by is in one line of a cache");

/* Fibonacci hashing: the upper bits of a product with 2^64 / golden ratio. */
static size_t place_of(uint64_t key, uint64_t probe) { return ((key * UINT64_C(0x9E3779B97F4A7C15) >> 32) + probe) % ES_COSTS; }

/* The place of another key becomes this one's. */
static void replace(struct es_cost *entry, uint64_t key) {
    ES_COST_SET(entry->key, 0);
    ES_COST_SET(entry->ns, 0);
    entry->most_ns = 0;
    entry->clean = false;
    entry->exact = 0;
    entry->tries = 0;
    ES_COST_SET(entry->asks, 0);
    ES_COST_SET(entry->mixed, false);
    entry->spread_ns = 0;
    ES_COST_SET(entry->exact_ns, 0);
    ES_COST_SET(entry->sure, false);
    entry->varies = false;
    entry->provisional = false;
    ES_COST_SET(entry->samples, 0);
    ES_COST_SET(entry->missed, 0);
    entry->pending_since_ns = 0;
    entry->call_ns = 0;
    entry->far_ns = 0;
    entry->single_ns = 0;
    ES_COST_SET(entry->key, key);
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
        const uint64_t there = ES_COST_GET(entry->key);

        if (there == key)
            return entry;
        if (there == 0)
            break;
    }
    return NULL;
}

bool es_costs_due(const struct es_costs *costs, const struct es_cost *entry) {
    const bool sure = ES_COST_GET(entry->sure) && !ES_COST_GET(entry->mixed) && ES_COST_GET(entry->ns) < ES_COSTS_SHORT_NS;
    const uint32_t missed = ES_COST_GET(entry->missed), stale = sure ? ES_COSTS_SURE_STALE : ES_COSTS_STALE;

    return missed > stale && ES_COST_GET(costs->batches) >= ES_COSTS_APART && missed >= ES_COST_GET(costs->most_missed);
}

uint64_t es_costs_usual_ns(const struct es_cost *entry, bool beside) {
    const uint64_t exact_ns = beside ? ES_COST_GET(entry->exact_ns) : 0;

    return exact_ns != 0 ? exact_ns : ES_COST_GET(entry->ns);
}

int64_t es_costs_known_ns(const struct es_costs *costs, const struct es_cost *entry, uint64_t key, bool beside) {
    uint64_t ns;

    if (entry == NULL)
        return 0;
    if (ES_COST_GET(entry->samples) == 0 || ES_COST_GET(entry->asks) != 0 || es_costs_due(costs, entry))
        return 0;
    ns = es_costs_usual_ns(entry, beside);
    return ES_COST_GET(entry->key) == key ? (int64_t)ns : 0;
}

void es_costs_count(struct es_costs *costs, bool again) {
    ES_COST_SET(costs->batches, again ? 0 : ES_COST_GET(costs->batches) + 1);
    if (again)
        ES_COST_SET(costs->most_missed, 0);
}

static void miss(struct es_costs *costs, struct es_cost *entry) {
    const uint32_t missed = ES_COST_GET(entry->missed) + 1;

    ES_COST_SET(entry->missed, missed);
    if (missed > ES_COST_GET(costs->most_missed))
        ES_COST_SET(costs->most_missed, missed);
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

void es_costs_learn_beside(struct es_costs *costs, uint64_t key, uint64_t most_ns) {
    struct es_cost *entry = es_costs_find(costs, key);

    entry->pending_since_ns = 0;
    if (entry->samples != 0 && !entry->provisional)
        return;
    if (most_ns < ES_COSTS_LEAST_NS)
        most_ns = ES_COSTS_LEAST_NS;
    entry->provisional = true;
    if (entry->samples == 0 || most_ns < entry->ns)
        ES_COST_SET(entry->ns, most_ns);
    ES_COST_SET(entry->samples, 1);
    ES_COST_SET(entry->missed, 0);
}

/* What was tried beside others does not count: it may be timed exactly as if it were seen for the first time. */
static void begin_anew(struct es_cost *entry) {
    entry->provisional = false;
    entry->tries = 0;
    ES_COST_SET(entry->samples, 0);
}

bool es_costs_timed_exactly(const struct es_cost *entry) { return entry->ns < ES_COSTS_EXACT_MOST_NS; }

void es_costs_learn(struct es_costs *costs, uint64_t key, uint64_t ns) {
    struct es_cost *entry = es_costs_find(costs, key);
    bool timed, far;
    int64_t weight;

    if (entry->provisional)
        begin_anew(entry);
    timed = entry->samples != 0 && es_costs_timed_exactly(entry);
    weight = entry->samples < ES_COSTS_WEIGHT ? (int64_t)entry->samples + 1 : ES_COSTS_WEIGHT;
    if (ns < ES_COSTS_LEAST_NS)
        ns = ES_COSTS_LEAST_NS;
    far = entry->samples != 0 && entry->samples < ES_COSTS_WEIGHT && ns > ES_COSTS_FAR * entry->ns;
    /* What the first were of was cut short, most likely, by what ran before or beside it. In a single one that is longer something
     * else ran, as likely, which says nothing. */
    if (far && entry->far_ns != 0)
        ES_COST_SET(entry->ns, ns < entry->far_ns ? ns : entry->far_ns);
    else if (!far)
        ES_COST_SET(entry->ns, (uint64_t)((int64_t)entry->ns + ((int64_t)ns - (int64_t)entry->ns) / weight));
    if (!timed && entry->tries == 0 && es_costs_timed_exactly(entry))
        ES_COST_SET(entry->asks, ES_COSTS_ASKS);
    entry->far_ns = far ? ns : 0;
    if (entry->samples < UINT32_MAX)
        ES_COST_SET(entry->samples, entry->samples + 1);
    ES_COST_SET(entry->missed, 0);
    entry->pending_since_ns = 0;
}

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
