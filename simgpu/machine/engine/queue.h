/* The contexts' queues, as the engine reads them. Under the GPU's lock. */
#ifndef SIMGPU_QUEUE_H
#define SIMGPU_QUEUE_H

#include "machine/engine/engine.h"

#define NEVER UINT64_MAX

/* The index of the first live context at or after `index`; SIMGPU_CONTEXTS: no more. */
static inline uint32_t live_from(const struct simgpu_gpu *gpu, uint32_t index) {
    while (index < SIMGPU_CONTEXTS) {
        uint64_t rest = gpu->live[index / 64] >> (index % 64);
        if (rest)
            return index + (uint32_t)__builtin_ctzll(rest);
        index = (index / 64 + 1) * 64;
    }
    return SIMGPU_CONTEXTS;
}

#define FOR_LIVE(gpu, index) for (uint32_t index = live_from(gpu, 0); index < SIMGPU_CONTEXTS; index = live_from(gpu, index + 1))

static inline const struct simgpu_entry *entry_of(const struct simgpu_gpu *gpu, uint32_t context, uint64_t number) {
    return &gpu->rings[context].entries[number % SIMGPU_RING];
}

/* What an entry is behind, where engines overlap. */
static inline struct simgpu_order *order_of(const struct simgpu_gpu *gpu, uint32_t context, uint64_t number) {
    return &orders_of(gpu, context)->orders[number % SIMGPU_RING];
}

/* One past the last entry that the context will run. */
static inline uint64_t end_of_queue(const struct simgpu_context *context) {
    if (context->state == SIMGPU_CONTEXT_DYING)
        return context->limit;
    return context->state == SIMGPU_CONTEXT_LIVE ? load_u64(&context->tail) : context->completed;
}

/* When the entry at the head of the queue can start; NEVER when there is none or a host function holds it. */
static inline uint64_t ready_ns(const struct simgpu_gpu *gpu, uint32_t index) {
    const struct simgpu_context *context = &gpu->contexts[index];
    if (context->completed >= end_of_queue(context))
        return NEVER;
    const struct simgpu_entry *head = entry_of(gpu, index, context->completed);
    if (head->kind == SIMGPU_HOST && context->state == SIMGPU_CONTEXT_LIVE)
        return load_u64(&context->host_done) > context->completed ? context->host_done_ns : NEVER;
    return head->begin_ns ? head->begin_ns : head->enqueue_ns + ENGINE_LAUNCH_LATENCY_NS;
}

#endif
