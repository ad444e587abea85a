#ifndef SIMGPU_TEST_OVERLAP_BENCH_H
#define SIMGPU_TEST_OVERLAP_BENCH_H

#include <stdlib.h>

#include "../invented.h"
#include "../property.h"
#include "machine/engine/engine.h"

/* The engine where engines overlap, on invented times and random work. Built with sanitizers and run by test_engine.py, one
 * property a call. */

#define SWITCH_NS (150 * US)

enum { CONTEXTS = 3, STREAMS = 4, PIECES = 300, PROCESSORS = 10, MOST_BLOCKS = PROCESSORS * ENGINE_BLOCKS };

struct bench {
    struct simgpu_gpu gpu;
    struct simgpu_orders orders[CONTEXTS];
    struct simgpu_process processes[CONTEXTS];
    uint32_t scheduling;
    uint64_t last[CONTEXTS][STREAMS]; /* one past the last entry of each stream */
};

/* For free(). */
struct bench *make(uint32_t scheduling, uint64_t switch_ns);

/* Queues all pieces; looks meanwhile where it is to be looked often. When the last was queued. */
uint64_t fill(struct bench *bench, uint64_t seed, bool often);

void advance(struct bench *bench, uint64_t to_ns);
const struct simgpu_log_entry *logged(const struct bench *bench, uint64_t number);
const struct simgpu_entry *entry(const struct bench *bench, uint32_t context, uint64_t number);

#define ALL_VARIANTS(scheduling, seed)                          \
    for (uint32_t scheduling = 0; scheduling < 2; scheduling++) \
        for (uint64_t seed = 1; seed <= 10 * times; seed++)

#define PROPERTY(name) void name(void);
#include "properties.def"
#undef PROPERTY

#endif
