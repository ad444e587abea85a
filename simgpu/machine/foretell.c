/* When queued work will be done, as far as can be known. */
#include "machine/engine.h"
#include "machine/queue.h"

/* A host function may return at any time: look again so much later. */
#define HOST_POLL_NS 200000u

/* Nanoseconds of work that a context still has before entry `number`. */
static uint64_t work_before_ns(const struct simgpu_gpu *gpu, uint32_t index, uint64_t number) {
    const struct simgpu_context *context = &gpu->contexts[index];
    if (number <= context->completed)
        return 0;
    return entry_of(gpu, index, number - 1)->queued_ns - context->completed_ns - context->head_done_ns;
}

/* The first entry of a context that was queued after `time_ns`; entries are in the order of that time. */
static uint64_t first_after(const struct simgpu_gpu *gpu, uint32_t index, uint64_t time_ns) {
    uint64_t low = gpu->contexts[index].completed, high = end_of_queue(&gpu->contexts[index]);
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (entry_of(gpu, index, middle)->enqueue_ns <= time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* When the context's head can start in fifo, if all that others queued before `entry` goes first. */
static uint64_t fifo_start_ns(const struct simgpu_gpu *gpu, uint32_t own, uint64_t entry) {
    uint64_t queued_ns = entry_of(gpu, own, entry)->enqueue_ns;
    uint64_t start_ns = gpu->time_ns;
    FOR_LIVE(gpu, other) {
        if (other != own)
            start_ns += work_before_ns(gpu, other, first_after(gpu, other, queued_ns));
    }
    return start_ns;
}

/* When the context's next turn can start. */
static uint64_t timeslice_start_ns(const struct simgpu_gpu *gpu, uint32_t own) {
    uint64_t start_ns = gpu->time_ns;
    if (gpu->running == (int32_t)own)
        return start_ns;
    FOR_LIVE(gpu, other) {
        const struct simgpu_context *context = &gpu->contexts[other];
        bool runs = gpu->running == (int32_t)other;
        if (other == own || ready_ns(gpu, other) > gpu->time_ns || (!runs && context->turn > gpu->contexts[own].turn))
            continue;
        uint64_t turn_ns = runs ? gpu->turn_end_ns - gpu->time_ns : ENGINE_TURN_NS;
        uint64_t work_ns = work_before_ns(gpu, other, end_of_queue(context));
        start_ns += work_ns < turn_ns ? work_ns : turn_ns;
    }
    return start_ns;
}

uint64_t engine_earliest_end_ns(const struct simgpu_gpu *gpu, uint32_t scheduling, uint32_t index, uint64_t entry) {
    if (gpu->contexts[index].completed > entry)
        return gpu->time_ns;
    uint64_t ready = ready_ns(gpu, index);
    if (ready == NEVER)
        return gpu->time_ns + HOST_POLL_NS;
    uint64_t start_ns = scheduling == SIMGPU_TIMESLICE ? timeslice_start_ns(gpu, index)
                                                       : fifo_start_ns(gpu, index, entry);
    return (start_ns < ready ? ready : start_ns) + work_before_ns(gpu, index, entry + 1);
}
