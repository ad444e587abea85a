/* Each step is written down before it is done: in its place from the first, which counts once it is valid. */
#include "machine/engine/steps.h"

#include "machine/engine/engine.h"
#include "machine/engine/queue.h"

void step_free_context(struct simgpu_gpu *gpu, uint32_t index) {
    store_u64(&gpu->contexts[index].memory_bytes, 0);
    store_u32(&gpu->contexts[index].state, SIMGPU_CONTEXT_FREE);
    gpu->live[index / 64] &= ~(1ull << (index % 64));
}

static void apply(struct simgpu_gpu *gpu, struct simgpu_process *processes, uint32_t gpu_index, const struct simgpu_step *step) {
    if (step->context >= 0) {
        struct simgpu_context *context = &gpu->contexts[step->context];
        struct simgpu_process *process = &processes[context->process];
        struct simgpu_entry *entry = &gpu->rings[step->context].entries[step->ring_number % SIMGPU_RING];
        /* Only while the engine has it: before and after it is the owner's to write. */
        if (step->writes_entry) {
            entry->begin_ns = step->begin_ns;
            entry->end_ns = step->end_ns;
        }
        context->ran_ns = step->ran_ns;
        if (step->writes_entry && gpu->orders_bytes) {
            struct simgpu_order *order = order_of(gpu, (uint32_t)step->context, step->ring_number);
            order->due_ns = step->due_ns;
            store_u32(&order->state, step->order_state);
        }
        context->head_done_ns = step->head_done_ns;
        context->completed_ns = step->completed_ns;
        context->turn = step->turn;
        context->limit = step->limit;
        store_u64(&process->executed_ns[gpu_index], step->executed_ns);
        store_u64(&process->entries[gpu_index], step->entries);
        /* Last: who sees that an entry is done reads its end without the lock. */
        store_u64(&context->completed, step->completed);
        if (step->free_context)
            step_free_context(gpu, (uint32_t)step->context);
    }
    if (step->log_count != gpu->log_count)
        gpu->log[(step->log_count - 1) % SIMGPU_LOG] = step->log;
    store_u64(&gpu->log_count, step->log_count);
    gpu->running = step->running;
    gpu->turn_end_ns = step->turn_end_ns;
    gpu->segment_begin_ns = step->segment_begin_ns;
    gpu->turns = step->turns;
    gpu->loaded = step->loaded;
    gpu->switched_ns = step->switched_ns;
    store_u64(&gpu->busy_ns, step->busy_ns);
    store_u64(&gpu->time_ns, step->time_ns);
}

/* A process may be killed between any two instructions: the compiler is not to move what is written across these lines. */
void step_commit(struct simgpu_gpu *gpu, struct simgpu_process *processes, uint32_t gpu_index) {
    store_u32(&gpu->step.valid, 1);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    apply(gpu, processes, gpu_index, &gpu->step);
    store_u32(&gpu->step.valid, 0);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

void engine_recover(struct simgpu_gpu *gpu, struct simgpu_process *processes, uint32_t gpu_index) {
    if (load_u32(&gpu->step.valid))
        step_commit(gpu, processes, gpu_index);
}

struct simgpu_step *step_unchanged(struct simgpu_gpu *gpu, const struct simgpu_process *processes, uint32_t gpu_index,
                                   int32_t index) {
    struct simgpu_step *step = &gpu->step;
    step->context = index;
    step->running = gpu->running;
    step->writes_entry = 0;
    step->free_context = 0;
    step->time_ns = gpu->time_ns;
    step->turn_end_ns = gpu->turn_end_ns;
    step->segment_begin_ns = gpu->segment_begin_ns;
    step->turns = gpu->turns;
    step->loaded = gpu->loaded;
    step->switched_ns = gpu->switched_ns;
    step->busy_ns = gpu->busy_ns;
    step->log_count = gpu->log_count;
    if (index >= 0) {
        const struct simgpu_context *context = &gpu->contexts[index];
        const struct simgpu_process *process = &processes[context->process];
        step->completed = context->completed;
        step->head_done_ns = context->head_done_ns;
        step->completed_ns = context->completed_ns;
        step->ran_ns = context->ran_ns;
        step->turn = context->turn;
        step->limit = context->limit;
        step->ring_number = context->completed;
        step->executed_ns = process->executed_ns[gpu_index];
        step->entries = process->entries[gpu_index];
    }
    return step;
}

void step_log(struct simgpu_step *step, const struct simgpu_gpu *gpu, const struct simgpu_process *processes, uint64_t begin_ns,
              bool last) {
    const struct simgpu_context *context = &gpu->contexts[step->context];
    const struct simgpu_entry *head = entry_of(gpu, (uint32_t)step->context, step->ring_number);
    step->log = (struct simgpu_log_entry){
        .begin_ns = begin_ns,
        .end_ns = step->time_ns,
        .process = processes[context->process].id,
        .entry = step->ring_number,
        .slot = context->process,
        .context = (uint32_t)step->context,
        .stream = head->stream,
        .kind = (uint16_t)head->kind,
        .last = last,
    };
    step->log_count++;
}

void step_end_turn(struct simgpu_step *step, const struct simgpu_gpu *gpu) {
    const struct simgpu_context *context = &gpu->contexts[step->context];
    step->turn = ++step->turns;
    step->running = -1;
    if (context->state == SIMGPU_CONTEXT_DYING) {
        step->limit = step->completed;
        step->free_context = 1;
    }
}

void step_begin_turn(struct simgpu_step *step, const struct simgpu_gpu *gpu, int32_t index) {
    uint64_t id = gpu->contexts[index].id;
    if (gpu->loaded && gpu->loaded != id)
        step->switched_ns = step->time_ns + gpu->switch_ns;
    uint64_t begin_ns = step->switched_ns > step->time_ns ? step->switched_ns : step->time_ns;
    step->loaded = id;
    step->running = index;
    step->turn_end_ns = begin_ns + ENGINE_TURN_NS;
    step->segment_begin_ns = begin_ns;
}
