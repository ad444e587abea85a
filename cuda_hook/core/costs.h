#ifndef EDGESHARE_CORE_COSTS_H
#define EDGESHARE_CORE_COSTS_H

#include <stddef.h>
#include <stdint.h>

/* How long each submission usually takes on the device. A key names what is submitted: a function and the magnitude
 * of its grid, a kind of copy and the magnitude of its size, a graph. Under a lock, but for what says otherwise. */

enum {
    ES_COSTS = 4096,       /* entries; a program has some hundreds of kernels */
    ES_COSTS_PROBES = 8,   /* places where a key may stand; the least used one gives way */
    ES_COSTS_WEIGHT = 8,   /* a new time counts 1/8, the first ones more: settled after some ten, follows within some twenty */
    ES_COSTS_LEAST_NS = 500, /* events resolve no less (CUDA Driver API, cuEventElapsedTime); and nothing costs nothing */
    ES_COSTS_STALE = 64,   /* batches that told nothing of it after which a function is timed alone once more */
};

struct es_cost {
    uint64_t key; /* 0: a free place */
    uint64_t ns;  /* mean; meaningless without samples */
    uint32_t samples;
    uint32_t missed;           /* batches since the last sample that were shared with other functions, or amid other work */
    uint64_t pending_since_ns; /* when its first, timed launch was let go; 0 when none is on its way */
};

struct es_costs {
    struct es_cost entries[ES_COSTS];
};

/* The entry of a key (never 0), made when there is none; never NULL. Valid until the next call. */
struct es_cost *es_costs_find(struct es_costs *costs, uint64_t key);

/* A batch of this key's launches has ended, and how long they took was not seen: `amid` other work, of whose time it has an
 * unknown part. */
void es_costs_miss(struct es_costs *costs, uint64_t key, int amid);

/* The entry of a key for what follows, or NULL. Needs no lock, and the next moment it may be another key's. */
struct es_cost *es_costs_look(struct es_costs *costs, uint64_t key);

/* How long a launch of the key usually takes; 0 when that is not known, or time to be measured anew. Needs no lock: what it
 * says was true of this key at some moment of the call. */
int64_t es_cost_known_ns(const struct es_cost *entry, uint64_t key);

/* A batch that will tell nothing of the key has launches of it: other functions share it. Needs no lock: beside others a
 * count may be lost. */
void es_cost_share(struct es_cost *entry);

/* One launch of the key was seen to take this long. */
void es_costs_learn(struct es_costs *costs, uint64_t key, uint64_t ns);

#endif
