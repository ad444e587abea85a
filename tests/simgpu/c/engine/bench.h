#ifndef SIMGPU_TEST_ENGINE_BENCH_H
#define SIMGPU_TEST_ENGINE_BENCH_H

#include <stdlib.h>

#include "../invented.h"
#include "../property.h"
#include "machine/engine/engine.h"

/* The engine on invented times: one GPU, and processes of one context each, whose numbers are the contexts'. Built with
 * sanitizers and run by test_engine.py, one property a call. */

#define SWITCH_NS (250 * US)

struct bench {
    struct simgpu_gpu gpu;
    struct simgpu_process processes[SIMGPU_PROCESSES];
    uint32_t scheduling;
    uint64_t queued_ns[SIMGPU_CONTEXTS];
};

/* For free(). */
struct bench *make(uint32_t scheduling, uint32_t contexts);

/* The same, where a switch between contexts takes so long. */
struct bench *make_paced(uint32_t scheduling, uint32_t contexts, uint64_t switch_ns);

/* Puts an entry into a context's queue, of this kind or a kernel; its number there. */
uint64_t push_kind(struct bench *bench, uint32_t index, uint64_t at_ns, uint64_t duration_ns, uint32_t kind);
uint64_t push(struct bench *bench, uint32_t index, uint64_t at_ns, uint64_t duration_ns);

void advance(struct bench *bench, uint64_t to_ns);
const struct simgpu_log_entry *logged(const struct bench *bench, uint64_t number);

/* When the entry of that number ended. */
uint64_t ended_ns(const struct bench *bench, uint32_t index, uint64_t number);

#define PROPERTY(name) void name(void);
#include "properties.def"
#undef PROPERTY

#endif
