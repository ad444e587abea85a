#include "bench.h"

struct bench *make(uint32_t scheduling, uint32_t contexts) {
    struct bench *bench = calloc(1, sizeof *bench);
    REQUIRE(bench);
    bench->scheduling = scheduling;
    bench->gpu.running = -1;
    bench->gpu.time_ns = START;
    for (uint32_t index = 0; index < contexts; index++) {
        bench->gpu.contexts[index].state = SIMGPU_CONTEXT_LIVE;
        bench->gpu.contexts[index].process = index;
        bench->gpu.contexts[index].id = index + 1;
        bench->gpu.contexts[index].memory_bytes = 1;
        bench->gpu.contexts[index].turn = bench->gpu.turns++;
        bench->gpu.live[index / 64] |= 1ull << (index % 64);
        bench->processes[index].id = index + 1;
    }
    return bench;
}

struct bench *make_paced(uint32_t scheduling, uint32_t contexts, uint64_t switch_ns) {
    struct bench *bench = make(scheduling, contexts);
    bench->gpu.switch_ns = switch_ns;
    return bench;
}

uint64_t push_kind(struct bench *bench, uint32_t index, uint64_t at_ns, uint64_t duration_ns, uint32_t kind) {
    struct simgpu_context *context = &bench->gpu.contexts[index];
    uint64_t number = context->tail;
    bench->queued_ns[index] += duration_ns;
    bench->gpu.rings[index].entries[number % SIMGPU_RING] = (struct simgpu_entry){
        .enqueue_ns = at_ns, .duration_ns = duration_ns, .queued_ns = bench->queued_ns[index], .kind = kind};
    context->tail++;
    return number;
}

uint64_t push(struct bench *bench, uint32_t index, uint64_t at_ns, uint64_t duration_ns) {
    return push_kind(bench, index, at_ns, duration_ns, SIMGPU_KERNEL);
}

void advance(struct bench *bench, uint64_t to_ns) { engine_advance(&bench->gpu, bench->processes, 0, bench->scheduling, to_ns); }

const struct simgpu_log_entry *logged(const struct bench *bench, uint64_t number) {
    REQUIRE(number < bench->gpu.log_count);
    return &bench->gpu.log[number % SIMGPU_LOG];
}

uint64_t ended_ns(const struct bench *bench, uint32_t index, uint64_t number) {
    return bench->gpu.rings[index].entries[number % SIMGPU_RING].end_ns;
}
