#include "machine/engine/view.h"

struct room {
    uint64_t blocks;
    bool full; /* an earlier kernel waits for room */
    bool copies[2];
};

static uint64_t blocks_of(const struct simgpu_gpu *gpu, uint32_t place) {
    uint64_t most = (uint64_t)gpu->model.multiprocessors * ENGINE_BLOCKS;
    return place == SIMGPU_PLACE_ALL || place > most ? most : place;
}

static bool is_copy(uint32_t place) { return place == SIMGPU_PLACE_UP || place == SIMGPU_PLACE_DOWN; }

static void occupy(const struct simgpu_gpu *gpu, struct room *room, uint32_t place) {
    if (is_copy(place))
        room->copies[place - SIMGPU_PLACE_UP] = true;
    else
        room->blocks -= blocks_of(gpu, place);
}

static bool fits(const struct simgpu_gpu *gpu, struct room *room, uint32_t place) {
    if (is_copy(place))
        return !room->copies[place - SIMGPU_PLACE_UP];
    room->full |= blocks_of(gpu, place) > room->blocks;
    return !room->full;
}

/* First what has begun. */
static void look_at_begun(const struct simgpu_gpu *gpu, uint32_t index, struct view *view, struct room *room) {
    const struct simgpu_context *context = &gpu->contexts[index];
    for (uint64_t number = context->completed, tail = tail_of(context); number < tail; number++) {
        const struct simgpu_order *order = order_of(gpu, index, number);
        if (order->state != SIMGPU_RUNS && order->state != SIMGPU_PAUSED)
            continue;
        const struct simgpu_entry *entry = entry_of(gpu, index, number);
        uint64_t end_ns = NEVER;
        if (takes_gpu(entry))
            occupy(gpu, room, order->place);
        if (order->state == SIMGPU_PAUSED)
            continue;
        if (takes_gpu(entry)) {
            view->runs = least(view->runs, number);
            end_ns = gpu->time_ns + order->due_ns - context->ran_ns;
        } else if (context->state == SIMGPU_CONTEXT_LIVE && load_u64(&context->host_done) > number) {
            end_ns = context->host_done_ns;
        } else {
            view->host = true;
        }
        if (end_ns <= gpu->time_ns)
            view->ended = least(view->ended, number);
        else
            view->next_ns = least(view->next_ns, end_ns);
    }
}

/* Then what may begin: what was paused, and what is behind nothing. */
static void look_at_waiting(const struct simgpu_gpu *gpu, uint32_t index, struct view *view, struct room *room) {
    const struct simgpu_context *context = &gpu->contexts[index];
    bool legacy = false, blocking = false;
    for (uint64_t number = context->completed, tail = tail_of(context); number < tail && view->starts == NEVER; number++) {
        const struct simgpu_order *order = order_of(gpu, index, number);
        bool behind = (order->scope != SIMGPU_SCOPE_NONE && legacy) || (order->scope >= SIMGPU_SCOPE_LEGACY && blocking);
        if (order->state == SIMGPU_DONE)
            continue;
        legacy |= order->scope == SIMGPU_SCOPE_LEGACY;
        blocking |= order->scope == SIMGPU_SCOPE_BLOCKING;
        if (order->state == SIMGPU_PAUSED)
            view->starts = number;
        if (order->state != SIMGPU_WAITS || behind || (order->behind && !is_done(gpu, index, number - order->behind)) ||
            (order->waits && !is_done(gpu, index, number - order->waits)))
            continue;
        const struct simgpu_entry *entry = entry_of(gpu, index, number);
        uint64_t ready = entry->enqueue_ns + (entry->kind == SIMGPU_ORDER ? 0 : ENGINE_LAUNCH_LATENCY_NS);
        if (ready > gpu->time_ns)
            view->next_ns = least(view->next_ns, ready);
        else if (!takes_gpu(entry) || fits(gpu, room, order->place))
            view->starts = number;
    }
}

struct view view_of(const struct simgpu_gpu *gpu, uint32_t index) {
    struct view view = {NEVER, NEVER, NEVER, NEVER, false};
    struct room room = {.blocks = (uint64_t)gpu->model.multiprocessors * ENGINE_BLOCKS};
    look_at_begun(gpu, index, &view, &room);
    /* What a dead process has queued does not begin. */
    if (gpu->contexts[index].state == SIMGPU_CONTEXT_LIVE)
        look_at_waiting(gpu, index, &view, &room);
    return view;
}
