/* A GPU whose engines overlap: one for kernels, one for copies of each direction. One context at a time has all of them,
 * in fifo and timeslice as in engine.c. Of its entries those run side by side that are behind nothing that is not done
 * (struct simgpu_order) and have room: on a copy engine one, and of kernels as many as have no more blocks together than
 * the GPU holds; one that fills it runs alone. A kernel that has no room yet is not passed by later ones.
 *
 * What runs ends at a point of the context's own time, which stands still while another context has the GPU. The GPU is
 * busy, and the context's process executes, while at least one entry runs, however many do. The log has an interval for
 * each entry; those of one context may overlap.
 *
 * fifo: an entry does not begin while another context has one that is ready and was queued before it, so the GPU goes
 * over once what runs has ended. timeslice: what runs at a turn's end goes on in the next one. */
#include "machine/engine/overlap.h"

#include "machine/engine/engine.h"
#include "machine/engine/steps.h"
#include "machine/engine/view.h"

/* How soon somebody looks again who waits for what nothing can be said of. */
#define POLL_NS 10000u

bool overlap_runs(const struct simgpu_gpu *gpu, uint32_t index) {
    return gpu->running == (int32_t)index && view_of(gpu, index).runs != NEVER;
}

/* When a context has something for the GPU to do; then `queued_ns` is when that was queued, 0: it has begun. */
static uint64_t wants_ns(const struct simgpu_gpu *gpu, uint32_t index, uint64_t *queued_ns) {
    struct view view = view_of(gpu, index);
    *queued_ns = 0;
    if (view.ended != NEVER || view.runs != NEVER)
        return gpu->time_ns;
    if (view.starts == NEVER)
        return view.next_ns;
    *queued_ns = entry_of(gpu, index, view.starts)->enqueue_ns;
    return gpu->time_ns;
}

/* The context that goes next now, or -1 and in `next_ns` when there will be one. */
static int32_t pick(const struct simgpu_gpu *gpu, uint32_t scheduling, uint64_t *next_ns) {
    int32_t best = -1;
    uint64_t best_rank = NEVER, rank;
    *next_ns = NEVER;
    FOR_LIVE(gpu, index) {
        uint64_t wants = wants_ns(gpu, index, &rank);
        if (scheduling == SIMGPU_TIMESLICE)
            rank = gpu->contexts[index].turn;
        if (wants > gpu->time_ns) {
            *next_ns = least(*next_ns, wants);
        } else if (best < 0 || rank < best_rank) {
            best = (int32_t)index;
            best_rank = rank;
        }
    }
    return best;
}

/* Whether no other context has something that goes before an entry. */
static bool goes_first(const struct simgpu_gpu *gpu, uint32_t scheduling, uint32_t own, uint64_t number) {
    uint64_t queued_ns;
    if (scheduling == SIMGPU_TIMESLICE)
        return true;
    FOR_LIVE(gpu, index) {
        if (index != own && wants_ns(gpu, index, &queued_ns) <= gpu->time_ns &&
            queued_ns < entry_of(gpu, own, number)->enqueue_ns)
            return false;
    }
    return true;
}

/* ---- steps of the running context ---- */

static struct simgpu_step *of_entry(struct simgpu_gpu *gpu, const struct simgpu_process *processes, uint32_t gpu_index,
                                    uint64_t number, uint32_t state) {
    struct simgpu_step *step = step_unchanged(gpu, processes, gpu_index, gpu->running);
    const struct simgpu_entry *entry = entry_of(gpu, (uint32_t)gpu->running, number);
    step->writes_entry = 1;
    step->ring_number = number;
    step->begin_ns = entry->begin_ns;
    step->end_ns = entry->end_ns;
    step->due_ns = order_of(gpu, (uint32_t)gpu->running, number)->due_ns;
    step->order_state = state;
    return step;
}

/* The entry is done, and with it maybe all before some later one. */
static void finish(struct simgpu_step *step, const struct simgpu_gpu *gpu) {
    uint32_t index = (uint32_t)gpu->running;
    step->order_state = SIMGPU_DONE;
    step->end_ns = step->time_ns;
    while (step->completed < tail_of(&gpu->contexts[index]) &&
           (step->completed == step->ring_number || is_done(gpu, index, step->completed)))
        step->completed++;
}

/* Since when it runs in this turn. */
static uint64_t ran_from_ns(const struct simgpu_gpu *gpu, const struct simgpu_step *step) {
    return step->begin_ns > gpu->segment_begin_ns ? step->begin_ns : gpu->segment_begin_ns;
}

static void start(struct simgpu_gpu *gpu, struct simgpu_process *processes, uint32_t gpu_index, uint64_t number) {
    const struct simgpu_entry *entry = entry_of(gpu, (uint32_t)gpu->running, number);
    struct simgpu_step *step = of_entry(gpu, processes, gpu_index, number, SIMGPU_RUNS);
    if (order_of(gpu, (uint32_t)gpu->running, number)->state == SIMGPU_WAITS) {
        step->begin_ns = step->time_ns;
        step->due_ns = step->ran_ns + entry->duration_ns;
    }
    if (entry->kind == SIMGPU_ORDER)
        finish(step, gpu);
    step_commit(gpu, processes, gpu_index);
}

static void end(struct simgpu_gpu *gpu, struct simgpu_process *processes, uint32_t gpu_index, uint64_t number) {
    struct simgpu_step *step = of_entry(gpu, processes, gpu_index, number, SIMGPU_DONE);
    finish(step, gpu);
    step->entries++;
    step_log(step, gpu, processes, ran_from_ns(gpu, step), true);
    step_commit(gpu, processes, gpu_index);
}

static void pause_entry(struct simgpu_gpu *gpu, struct simgpu_process *processes, uint32_t gpu_index, uint64_t number) {
    struct simgpu_step *step = of_entry(gpu, processes, gpu_index, number, SIMGPU_PAUSED);
    if (ran_from_ns(gpu, step) < step->time_ns)
        step_log(step, gpu, processes, ran_from_ns(gpu, step), false);
    step_commit(gpu, processes, gpu_index);
}

/* One step of the running context; false: there is nothing more to do until `now_ns`. */
static bool run(struct simgpu_gpu *gpu, struct simgpu_process *processes, uint32_t gpu_index, uint32_t scheduling,
                uint64_t now_ns) {
    struct view view = view_of(gpu, (uint32_t)gpu->running);
    bool over = scheduling == SIMGPU_TIMESLICE && gpu->time_ns >= gpu->turn_end_ns;
    if (view.ended != NEVER) {
        end(gpu, processes, gpu_index, view.ended);
        return true;
    }
    if (gpu->time_ns >= now_ns)
        return false;
    if (!over && view.starts != NEVER && goes_first(gpu, scheduling, (uint32_t)gpu->running, view.starts)) {
        start(gpu, processes, gpu_index, view.starts);
        return true;
    }
    if (over && view.runs != NEVER) {
        pause_entry(gpu, processes, gpu_index, view.runs);
        return true;
    }
    struct simgpu_step *step = step_unchanged(gpu, processes, gpu_index, gpu->running);
    if (view.runs == NEVER) {
        step_end_turn(step, gpu);
    } else {
        uint64_t stop_ns = least(now_ns, view.next_ns);
        if (scheduling == SIMGPU_TIMESLICE)
            stop_ns = least(stop_ns, step->turn_end_ns);
        uint64_t ran_ns = stop_ns - step->time_ns;
        step->ran_ns += ran_ns;
        step->executed_ns += ran_ns;
        step->busy_ns += ran_ns;
        step->time_ns = stop_ns;
    }
    step_commit(gpu, processes, gpu_index);
    return true;
}

void overlap_advance(struct simgpu_gpu *gpu, struct simgpu_process *processes, uint32_t gpu_index, uint32_t scheduling,
                     uint64_t now_ns) {
    for (;;) {
        bool switches = gpu->time_ns < gpu->switched_ns;
        if (!switches && gpu->running >= 0) {
            if (!run(gpu, processes, gpu_index, scheduling, now_ns))
                return;
            continue;
        }
        if (gpu->time_ns >= now_ns)
            return;
        struct simgpu_step *step = step_unchanged(gpu, processes, gpu_index, -1);
        uint64_t next_ns = gpu->switched_ns;
        int32_t chosen = switches ? -1 : pick(gpu, scheduling, &next_ns);
        if (chosen < 0)
            step->time_ns = least(next_ns, now_ns);
        else
            step_begin_turn(step, gpu, chosen);
        step_commit(gpu, processes, gpu_index);
    }
}

/* ---- when something will be done ---- */

/* Time that must pass until an entry is done, by what it is behind in its own stream; `begun`: the first of these has. */
static uint64_t chain_ns(const struct simgpu_gpu *gpu, uint32_t index, uint64_t number, bool *begun) {
    uint64_t sum_ns = 0;
    *begun = false;
    while (!is_done(gpu, index, number)) {
        const struct simgpu_order *order = order_of(gpu, index, number);
        const struct simgpu_entry *entry = entry_of(gpu, index, number);
        uint32_t back = order->behind ? order->behind : order->waits;
        *begun = order->state != SIMGPU_WAITS;
        if (order->state == SIMGPU_WAITS)
            sum_ns += entry->duration_ns;
        else if (takes_gpu(entry))
            sum_ns += order->due_ns - gpu->contexts[index].ran_ns;
        if (!back || order->state != SIMGPU_WAITS)
            break;
        number -= back;
    }
    return sum_ns;
}

/* From then on what runs on the GPU has so long to go, or its turn. */
static uint64_t others_ns(const struct simgpu_gpu *gpu, uint32_t scheduling, uint64_t from_ns) {
    uint32_t index = (uint32_t)gpu->running;
    const struct simgpu_context *context = &gpu->contexts[index];
    uint64_t most_ns = 0;
    for (uint64_t number = context->completed; number < tail_of(context); number++) {
        const struct simgpu_order *order = order_of(gpu, index, number);
        if (order->state == SIMGPU_RUNS && takes_gpu(entry_of(gpu, index, number)) && order->due_ns - context->ran_ns > most_ns)
            most_ns = order->due_ns - context->ran_ns;
    }
    uint64_t turn_ns = gpu->turn_end_ns > from_ns ? gpu->turn_end_ns - from_ns : 0;
    return scheduling == SIMGPU_TIMESLICE ? least(most_ns, turn_ns) : most_ns;
}

/* From then on what has not begun may. */
static uint64_t may_begin_ns(const struct simgpu_gpu *gpu, const struct view *view) {
    if (view->ended != NEVER || view->starts != NEVER)
        return gpu->time_ns;
    return view->next_ns == NEVER ? gpu->time_ns + POLL_NS : view->next_ns;
}

uint64_t overlap_earliest_end_ns(const struct simgpu_gpu *gpu, uint32_t scheduling, uint32_t index, uint64_t entry) {
    uint64_t from_ns = gpu->time_ns < gpu->switched_ns ? gpu->switched_ns : gpu->time_ns;
    struct view view = view_of(gpu, index);
    bool begun;
    uint64_t chain = chain_ns(gpu, index, entry, &begun);
    if (is_done(gpu, index, entry))
        return gpu->time_ns;
    if (gpu->running >= 0 && gpu->running != (int32_t)index)
        from_ns += others_ns(gpu, scheduling, from_ns);
    if (!begun && may_begin_ns(gpu, &view) > from_ns)
        from_ns = may_begin_ns(gpu, &view);
    uint64_t end_ns = from_ns + chain;
    if (end_ns <= gpu->time_ns)
        end_ns = gpu->time_ns + POLL_NS;
    return view.host ? least(end_ns, gpu->time_ns + ENGINE_HOST_POLL_NS) : end_ns;
}
