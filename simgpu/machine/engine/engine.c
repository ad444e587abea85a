/* The engine. A GPU runs one entry at a time (or, where its engines overlap, what overlap.c says); each context's entries
 * run in the order in which they were queued.
 *
 * fifo: of all contexts the entry queued first goes next, to its end. timeslice: contexts with work that is ready take
 * turns of ENGINE_TURN_NS, least recently served first; a turn may end inside a kernel, which goes on in the next one.
 *
 * Where the GPU goes from one context to another it first runs nothing for `switch_ns`: that is no context's executed
 * time, nor the GPU's busy time, nor a part of the turn that follows. Which context is next is decided before that time,
 * and stays so.
 *
 * Owners queue without the GPU's lock, so a look at a queue may come later than what was queued: the result is the same
 * whenever it is looked at, since an entry never starts before it was queued. */
#include "machine/engine/engine.h"
#include "machine/engine/overlap.h"
#include "machine/engine/queue.h"
#include "machine/engine/steps.h"

static uint64_t rank(const struct simgpu_gpu *gpu, uint32_t scheduling, uint32_t index) {
    if (scheduling == SIMGPU_TIMESLICE)
        return gpu->contexts[index].turn;
    return entry_of(gpu, index, gpu->contexts[index].completed)->enqueue_ns;
}

/* The context that goes next at `time_ns`, or -1 and in `next_ns` when there will be one. */
static int32_t pick(const struct simgpu_gpu *gpu, uint32_t scheduling, uint64_t time_ns, uint64_t *next_ns) {
    int32_t best = -1;
    uint64_t best_rank = NEVER;
    *next_ns = NEVER;
    FOR_LIVE(gpu, index) {
        uint64_t ready = ready_ns(gpu, index);
        if (ready > time_ns) {
            if (ready < *next_ns)
                *next_ns = ready;
        } else if (best < 0 || rank(gpu, scheduling, index) < best_rank) {
            best = (int32_t)index;
            best_rank = rank(gpu, scheduling, index);
        }
    }
    return best;
}

/* Runs the head of the running context up to its end, its turn's end or `now_ns`. */
static void run_head(struct simgpu_gpu *gpu, struct simgpu_process *processes, uint32_t gpu_index, uint32_t scheduling,
                     uint64_t now_ns) {
    const struct simgpu_context *context = &gpu->contexts[gpu->running];
    struct simgpu_step *step = step_unchanged(gpu, processes, gpu_index, gpu->running);
    const struct simgpu_entry *head = entry_of(gpu, (uint32_t)gpu->running, step->completed);
    step->writes_entry = 1;
    step->begin_ns = head->begin_ns;
    step->end_ns = head->end_ns;
    uint64_t left_ns = head->duration_ns - step->head_done_ns;
    uint64_t stop_ns = step->time_ns + left_ns;
    bool done = true;
    if (scheduling == SIMGPU_TIMESLICE && stop_ns > step->turn_end_ns) {
        stop_ns = step->turn_end_ns;
        done = false;
    }
    if (stop_ns > now_ns) {
        stop_ns = now_ns;
        done = false;
    }
    if (!step->begin_ns && (done || stop_ns > step->time_ns))
        step->begin_ns = step->time_ns;
    uint64_t ran_ns = stop_ns - step->time_ns;
    step->head_done_ns += ran_ns;
    step->executed_ns += ran_ns;
    step->busy_ns += ran_ns;
    step->time_ns = stop_ns;
    if (done) {
        step->end_ns = stop_ns;
        step->completed++;
        step->completed_ns += head->duration_ns;
        step->head_done_ns = 0;
        if (head->kind != SIMGPU_ORDER) {
            step->entries++;
            step_log(step, gpu, processes, step->segment_begin_ns, true);
        }
        step->segment_begin_ns = stop_ns;
        /* In fifo another context's entry may have been queued earlier than the next one here. */
        if (scheduling == SIMGPU_FIFO) {
            step->running = -1;
            step->free_context = context->state == SIMGPU_CONTEXT_DYING && step->completed >= context->limit;
        }
    } else if (scheduling == SIMGPU_TIMESLICE && stop_ns == step->turn_end_ns) {
        if (ran_ns || stop_ns > step->segment_begin_ns)
            step_log(step, gpu, processes, step->segment_begin_ns, false);
        step_end_turn(step, gpu);
    }
    step_commit(gpu, processes, gpu_index);
}

void engine_advance(struct simgpu_gpu *gpu, struct simgpu_process *processes, uint32_t gpu_index, uint32_t scheduling,
                    uint64_t now_ns) {
    if (gpu->orders_bytes) {
        overlap_advance(gpu, processes, gpu_index, scheduling, now_ns);
        return;
    }
    while (gpu->time_ns < now_ns) {
        if (gpu->time_ns < gpu->switched_ns) {
            struct simgpu_step *step = step_unchanged(gpu, processes, gpu_index, -1);
            step->time_ns = gpu->switched_ns < now_ns ? gpu->switched_ns : now_ns;
            step_commit(gpu, processes, gpu_index);
            continue;
        }
        if (gpu->running >= 0) {
            if (ready_ns(gpu, (uint32_t)gpu->running) <= gpu->time_ns) {
                run_head(gpu, processes, gpu_index, scheduling, now_ns);
                continue;
            }
            struct simgpu_step *step = step_unchanged(gpu, processes, gpu_index, gpu->running);
            step_end_turn(step, gpu);
            step_commit(gpu, processes, gpu_index);
        }
        uint64_t next_ns;
        int32_t chosen = pick(gpu, scheduling, gpu->time_ns, &next_ns);
        struct simgpu_step *step = step_unchanged(gpu, processes, gpu_index, -1);
        if (chosen < 0)
            step->time_ns = next_ns < now_ns ? next_ns : now_ns;
        else
            step_begin_turn(step, gpu, chosen);
        step_commit(gpu, processes, gpu_index);
    }
}

bool engine_others_queued(const struct simgpu_gpu *gpu, uint32_t index) {
    FOR_LIVE(gpu, other) {
        if (other != index && gpu->contexts[other].completed < end_of_queue(&gpu->contexts[other]))
            return true;
    }
    return false;
}

bool engine_is_one_contexts(const struct simgpu_gpu *gpu, uint32_t index) {
    for (uint32_t word = 0; word < SIMGPU_CONTEXTS / 64; word++) {
        if (load_u64(&gpu->live[word]) & ~(word == index / 64 ? 1ull << (index % 64) : 0))
            return false;
    }
    return true;
}

bool engine_is_away(const struct simgpu_gpu *gpu, uint32_t index) {
    return gpu->loaded && (gpu->loaded != gpu->contexts[index].id || gpu->time_ns < gpu->switched_ns);
}

void engine_condemn(struct simgpu_gpu *gpu, uint32_t index) {
    struct simgpu_context *context = &gpu->contexts[index];
    bool runs = gpu->running == (int32_t)index && context->completed < end_of_queue(context) &&
                entry_of(gpu, index, context->completed)->begin_ns;
    if (gpu->orders_bytes)
        runs = overlap_runs(gpu, index);
    context->limit = context->completed + (runs ? 1 : 0);
    store_u32(&context->state, SIMGPU_CONTEXT_DYING);
    if (!runs) {
        if (gpu->running == (int32_t)index)
            gpu->running = -1;
        step_free_context(gpu, index);
    }
}
