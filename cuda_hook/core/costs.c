#include "costs.h"

struct es_cost *es_costs_find(struct es_costs *costs, uint64_t key)
{
    /* Fibonacci hashing: the upper bits of a product with 2^64 / golden ratio. */
    const uint64_t place = key * UINT64_C(0x9E3779B97F4A7C15) >> 32;
    struct es_cost *least = NULL;

    for (uint64_t probe = 0; probe < ES_COSTS_PROBES; probe++) {
        struct es_cost *entry = &costs->entries[(place + probe) % ES_COSTS];

        if (entry->key == key)
            return entry;
        if (least == NULL || entry->samples < least->samples)
            least = entry;
        if (entry->key == 0)
            break;
    }
    *least = (struct es_cost){.key = key};
    return least;
}

void es_costs_miss(struct es_costs *costs, uint64_t key, int amid)
{
    struct es_cost *entry = es_costs_find(costs, key);

    entry->missed += amid != 0;
    entry->pending_since_ns = 0;
}

void es_costs_learn(struct es_costs *costs, uint64_t key, uint64_t ns)
{
    struct es_cost *entry = es_costs_find(costs, key);
    const int64_t weight = entry->samples < ES_COSTS_WEIGHT ? (int64_t)entry->samples + 1 : ES_COSTS_WEIGHT;

    if (ns < ES_COSTS_LEAST_NS)
        ns = ES_COSTS_LEAST_NS;
    entry->ns = (uint64_t)((int64_t)entry->ns + ((int64_t)ns - (int64_t)entry->ns) / weight);
    entry->samples += entry->samples < UINT32_MAX;
    entry->missed = 0;
    entry->pending_since_ns = 0;
}
