/* The engine. A GPU runs one entry at a time; each context's entries run in the order in which they were queued.
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
#include "machine/engine.h"
#include "machine/queue.h"

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

static void free_context(struct simgpu_gpu *gpu, uint32_t index) {
    store_u64(&gpu->contexts[index].memory_bytes, 0);
    store_u32(&gpu->contexts[index].state, SIMGPU_CONTEXT_FREE);
    gpu->live[index / 64] &= ~(1ull << (index % 64));
}

static void apply(struct simgpu_gpu *gpu, struct simgpu_process *processes, uint32_t gpu_index,
                  const struct simgpu_step *step) {
    if (step->context >= 0) {
        struct simgpu_context *context = &gpu->contexts[step->context];
        struct simgpu_process *process = &processes[context->process];
        struct simgpu_entry *entry = &gpu->rings[step->context].entries[step->ring_number % SIMGPU_RING];
        /* Only while the engine has it: before and after it is the owner's to write. */
        if (step->writes_entry) {
            entry->begin_ns = step->begin_ns;
            entry->end_ns = step->end_ns;
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
            free_context(gpu, (uint32_t)step->context);
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

static void commit(struct simgpu_gpu *gpu, struct simgpu_process *processes, uint32_t gpu_index,
                   struct simgpu_step *step) {
    step->valid = 0;
    gpu->step = *step;
    store_u32(&gpu->step.valid, 1);
    apply(gpu, processes, gpu_index, step);
    store_u32(&gpu->step.valid, 0);
}

void engine_recover(struct simgpu_gpu *gpu, struct simgpu_process *processes, uint32_t gpu_index) {
    if (!load_u32(&gpu->step.valid))
        return;
    struct simgpu_step step = gpu->step;
    apply(gpu, processes, gpu_index, &step);
    store_u32(&gpu->step.valid, 0);
}

/* The state as a step that changes nothing, of the running context where there is one. */
static struct simgpu_step unchanged(const struct simgpu_gpu *gpu, const struct simgpu_process *processes,
                                    uint32_t gpu_index, int32_t index) {
    struct simgpu_step step = {
        .context = index,
        .running = gpu->running,
        .time_ns = gpu->time_ns,
        .turn_end_ns = gpu->turn_end_ns,
        .segment_begin_ns = gpu->segment_begin_ns,
        .turns = gpu->turns,
        .loaded = gpu->loaded,
        .switched_ns = gpu->switched_ns,
        .busy_ns = gpu->busy_ns,
        .log_count = gpu->log_count,
    };
    if (index >= 0) {
        const struct simgpu_context *context = &gpu->contexts[index];
        const struct simgpu_process *process = &processes[context->process];
        step.completed = context->completed;
        step.head_done_ns = context->head_done_ns;
        step.completed_ns = context->completed_ns;
        step.turn = context->turn;
        step.limit = context->limit;
        step.ring_number = context->completed;
        step.executed_ns = process->executed_ns[gpu_index];
        step.entries = process->entries[gpu_index];
    }
    return step;
}

/* Closes the interval that runs, in the log. */
static void log_interval(struct simgpu_step *step, const struct simgpu_gpu *gpu, const struct simgpu_process *processes,
                         bool last) {
    const struct simgpu_context *context = &gpu->contexts[step->context];
    const struct simgpu_entry *head = entry_of(gpu, (uint32_t)step->context, step->ring_number);
    step->log = (struct simgpu_log_entry){
        .begin_ns = step->segment_begin_ns,
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

/* The running context gives the GPU up: its turn is over, or it has nothing that is ready. */
static void end_turn(struct simgpu_step *step, const struct simgpu_gpu *gpu) {
    const struct simgpu_context *context = &gpu->contexts[step->context];
    step->turn = ++step->turns;
    step->running = -1;
    if (context->state == SIMGPU_CONTEXT_DYING) {
        step->limit = step->completed;
        step->free_context = 1;
    }
}

/* Runs the head of the running context up to its end, its turn's end or `now_ns`. */
static void run_head(struct simgpu_gpu *gpu, struct simgpu_process *processes, uint32_t gpu_index, uint32_t scheduling,
                     uint64_t now_ns) {
    const struct simgpu_context *context = &gpu->contexts[gpu->running];
    struct simgpu_step step = unchanged(gpu, processes, gpu_index, gpu->running);
    const struct simgpu_entry *head = entry_of(gpu, (uint32_t)gpu->running, step.completed);
    step.writes_entry = 1;
    step.begin_ns = head->begin_ns;
    step.end_ns = head->end_ns;
    uint64_t left_ns = head->duration_ns - step.head_done_ns;
    uint64_t stop_ns = step.time_ns + left_ns;
    bool done = true;
    if (scheduling == SIMGPU_TIMESLICE && stop_ns > step.turn_end_ns) {
        stop_ns = step.turn_end_ns;
        done = false;
    }
    if (stop_ns > now_ns) {
        stop_ns = now_ns;
        done = false;
    }
    if (!step.begin_ns && (done || stop_ns > step.time_ns))
        step.begin_ns = step.time_ns;
    uint64_t ran_ns = stop_ns - step.time_ns;
    step.head_done_ns += ran_ns;
    step.executed_ns += ran_ns;
    step.busy_ns += ran_ns;
    step.time_ns = stop_ns;
    if (done) {
        step.end_ns = stop_ns;
        step.completed++;
        step.completed_ns += head->duration_ns;
        step.head_done_ns = 0;
        if (head->kind != SIMGPU_MARK) {
            step.entries++;
            log_interval(&step, gpu, processes, true);
        }
        step.segment_begin_ns = stop_ns;
        /* In fifo another context's entry may have been queued earlier than the next one here. */
        if (scheduling == SIMGPU_FIFO) {
            step.running = -1;
            step.free_context = context->state == SIMGPU_CONTEXT_DYING && step.completed >= context->limit;
        }
    } else if (scheduling == SIMGPU_TIMESLICE && stop_ns == step.turn_end_ns) {
        if (ran_ns || stop_ns > step.segment_begin_ns)
            log_interval(&step, gpu, processes, false);
        end_turn(&step, gpu);
    }
    commit(gpu, processes, gpu_index, &step);
}

/* The GPU goes on with a context, after a switch where another one ran last. */
static void begin_turn(struct simgpu_step *step, const struct simgpu_gpu *gpu, int32_t index) {
    uint64_t id = gpu->contexts[index].id;
    if (gpu->loaded && gpu->loaded != id)
        step->switched_ns = step->time_ns + gpu->switch_ns;
    uint64_t begin_ns = step->switched_ns > step->time_ns ? step->switched_ns : step->time_ns;
    step->loaded = id;
    step->running = index;
    step->turn_end_ns = begin_ns + ENGINE_TURN_NS;
    step->segment_begin_ns = begin_ns;
}

void engine_advance(struct simgpu_gpu *gpu, struct simgpu_process *processes, uint32_t gpu_index, uint32_t scheduling,
                    uint64_t now_ns) {
    while (gpu->time_ns < now_ns) {
        if (gpu->time_ns < gpu->switched_ns) {
            struct simgpu_step step = unchanged(gpu, processes, gpu_index, -1);
            step.time_ns = gpu->switched_ns < now_ns ? gpu->switched_ns : now_ns;
            commit(gpu, processes, gpu_index, &step);
            continue;
        }
        if (gpu->running >= 0) {
            if (ready_ns(gpu, (uint32_t)gpu->running) <= gpu->time_ns) {
                run_head(gpu, processes, gpu_index, scheduling, now_ns);
                continue;
            }
            struct simgpu_step step = unchanged(gpu, processes, gpu_index, gpu->running);
            end_turn(&step, gpu);
            commit(gpu, processes, gpu_index, &step);
        }
        uint64_t next_ns;
        int32_t chosen = pick(gpu, scheduling, gpu->time_ns, &next_ns);
        struct simgpu_step step = unchanged(gpu, processes, gpu_index, -1);
        if (chosen < 0)
            step.time_ns = next_ns < now_ns ? next_ns : now_ns;
        else
            begin_turn(&step, gpu, chosen);
        commit(gpu, processes, gpu_index, &step);
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
    context->limit = context->completed + (runs ? 1 : 0);
    store_u32(&context->state, SIMGPU_CONTEXT_DYING);
    if (!runs) {
        if (gpu->running == (int32_t)index)
            gpu->running = -1;
        free_context(gpu, index);
    }
}
