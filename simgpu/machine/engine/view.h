/* What a context's queue is like now, where engines overlap: what of it runs, and what may begin. Under the GPU's lock. */
#ifndef SIMGPU_VIEW_H
#define SIMGPU_VIEW_H

#include "machine/engine/queue.h"

/* What a look at a context's queue finds; entries are numbers, or NEVER. */
struct view {
    uint64_t ended;   /* has ended by now */
    uint64_t runs;    /* runs on the GPU */
    uint64_t starts;  /* may begin */
    uint64_t next_ns; /* when one of the three changes by itself while the context has the GPU and nothing begins */
    bool host;        /* a host function runs: of its end nothing can be said */
};

struct view view_of(const struct simgpu_gpu *gpu, uint32_t index);

static inline bool takes_gpu(const struct simgpu_entry *entry) {
    return entry->kind != SIMGPU_HOST && entry->kind != SIMGPU_ORDER;
}

static inline uint64_t tail_of(const struct simgpu_context *context) { return load_u64(&context->tail); }

static inline bool is_done(const struct simgpu_gpu *gpu, uint32_t index, uint64_t number) {
    return number < gpu->contexts[index].completed || order_of(gpu, index, number)->state == SIMGPU_DONE;
}

static inline uint64_t least(uint64_t one, uint64_t other) { return one < other ? one : other; }

#endif
