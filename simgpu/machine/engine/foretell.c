/* When queued work will be done, as far as can be known. */
#include "machine/engine/engine.h"
#include "machine/engine/overlap.h"
#include "machine/engine/queue.h"

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

/* From here on something can run: a switch that is under way is over first. */
static uint64_t free_ns(const struct simgpu_gpu *gpu) {
    return gpu->time_ns < gpu->switched_ns ? gpu->switched_ns : gpu->time_ns;
}

/* What goes before a context's entry. */
struct ahead {
    uint64_t work_ns;
    uint32_t others;   /* other contexts that run before it is done */
    uint32_t switches; /* the fewest in which all of those can be reached */
};

static void add(struct ahead *ahead, const struct simgpu_gpu *gpu, uint32_t other, uint64_t work_ns) {
    ahead->work_ns += work_ns;
    ahead->others++;
    ahead->switches += gpu->contexts[other].id != gpu->loaded;
}

/* In fifo: all that others queued before `entry`. */
static struct ahead fifo_ahead(const struct simgpu_gpu *gpu, uint32_t own, uint64_t entry) {
    uint64_t queued_ns = entry_of(gpu, own, entry)->enqueue_ns;
    struct ahead ahead = {0};
    FOR_LIVE(gpu, other) {
        uint64_t number = first_after(gpu, other, queued_ns);
        if (other != own && number > gpu->contexts[other].completed)
            add(&ahead, gpu, other, work_before_ns(gpu, other, number));
    }
    return ahead;
}

/* In timeslice: the turns until the context's next one. */
static struct ahead timeslice_ahead(const struct simgpu_gpu *gpu, uint32_t own) {
    struct ahead ahead = {0};
    if (gpu->running == (int32_t)own)
        return ahead;
    FOR_LIVE(gpu, other) {
        const struct simgpu_context *context = &gpu->contexts[other];
        bool runs = gpu->running == (int32_t)other;
        if (other == own || ready_ns(gpu, other) > gpu->time_ns || (!runs && context->turn > gpu->contexts[own].turn))
            continue;
        uint64_t turn_ns = runs ? gpu->turn_end_ns - free_ns(gpu) : ENGINE_TURN_NS;
        uint64_t work_ns = work_before_ns(gpu, other, end_of_queue(context));
        add(&ahead, gpu, other, work_ns < turn_ns ? work_ns : turn_ns);
    }
    return ahead;
}

uint64_t engine_earliest_end_ns(const struct simgpu_gpu *gpu, uint32_t scheduling, uint32_t index, uint64_t entry) {
    if (gpu->contexts[index].completed > entry)
        return gpu->time_ns;
    if (gpu->orders_bytes)
        return overlap_earliest_end_ns(gpu, scheduling, index, entry);
    uint64_t ready = ready_ns(gpu, index);
    if (ready == NEVER)
        return gpu->time_ns + ENGINE_HOST_POLL_NS;
    struct ahead ahead = scheduling == SIMGPU_TIMESLICE ? timeslice_ahead(gpu, index) : fifo_ahead(gpu, index, entry);
    /* Each context is switched to once at least, this one where another ran last or will; those that alternate meanwhile
     * need more. */
    uint64_t start_ns = free_ns(gpu) + ahead.work_ns + ahead.switches * gpu->switch_ns;
    bool returns = gpu->loaded && (ahead.others || gpu->loaded != gpu->contexts[index].id);
    return (start_ns < ready ? ready : start_ns) + (returns ? gpu->switch_ns : 0) + work_before_ns(gpu, index, entry + 1);
}
