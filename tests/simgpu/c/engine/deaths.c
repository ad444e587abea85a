#include <string.h>

#include "bench.h"

void the_dead_ones_queue_is_dropped_after_the_kernel_that_runs(void) {
    struct bench *bench = make(SIMGPU_FIFO, 2);
    for (int index = 0; index < 10; index++)
        push(bench, 0, START, 4 * MS);
    push(bench, 1, START + 1, 1 * MS);
    advance(bench, START + 1 * MS);
    engine_condemn(&bench->gpu, 0);
    REQUIRE(bench->gpu.contexts[0].state == SIMGPU_CONTEXT_DYING);
    advance(bench, START + 100 * MS);
    REQUIRE(bench->gpu.contexts[0].state == SIMGPU_CONTEXT_FREE);
    REQUIRE(bench->gpu.contexts[0].memory_bytes == 0);
    REQUIRE(bench->processes[0].executed_ns[0] == 4 * MS);
    REQUIRE(bench->gpu.log_count == 2 && logged(bench, 1)->begin_ns == logged(bench, 0)->end_ns);
    free(bench);
}

void the_dead_ones_kernel_ends_with_its_turn(void) {
    struct bench *bench = make(SIMGPU_TIMESLICE, 2);
    push(bench, 0, START, 1000 * MS);
    push(bench, 1, START, 10 * MS);
    advance(bench, START + 1 * MS);
    engine_condemn(&bench->gpu, 0);
    advance(bench, START + 100 * MS);
    REQUIRE(bench->gpu.contexts[0].state == SIMGPU_CONTEXT_FREE);
    REQUIRE(bench->processes[0].executed_ns[0] == 2 * MS);
    REQUIRE(bench->processes[1].executed_ns[0] == 10 * MS);
    free(bench);
}

void a_dead_context_that_does_not_run_is_freed_at_once(void) {
    struct bench *bench = make(SIMGPU_FIFO, 2);
    push(bench, 0, START, 10 * MS);
    push(bench, 1, START + 1, 10 * MS);
    advance(bench, START + 1 * MS);
    engine_condemn(&bench->gpu, 1);
    REQUIRE(bench->gpu.contexts[1].state == SIMGPU_CONTEXT_FREE);
    advance(bench, START + 100 * MS);
    REQUIRE(bench->processes[1].executed_ns[0] == 0 && bench->gpu.busy_ns == 10 * MS);
    free(bench);
}

void a_step_that_was_interrupted_is_done_again(void) {
    for (uint32_t variant = 0; variant < 4; variant++) {
        uint64_t switch_ns = variant / 2 * 3 * MS / 2;
        struct bench *whole = make_paced(variant % 2, 3, switch_ns), *torn = make_paced(variant % 2, 3, switch_ns);
        random_state = 31337;
        for (int index = 0; index < 200; index++) {
            uint32_t context = (uint32_t)random_below(3);
            uint64_t length_ns = random_below(3 * MS);
            push(whole, context, START + (uint64_t)index, length_ns);
            push(torn, context, START + (uint64_t)index, length_ns);
        }
        engine_condemn(&torn->gpu, 2);
        engine_condemn(&whole->gpu, 2);
        for (uint64_t look = 1; look <= 300; look++) {
            uint64_t now_ns = START + look * MS;
            advance(whole, now_ns);
            /* The other one goes as far, but a process died in its last step: the step is written down, half of what it
             * writes is still as it was before. */
            struct simgpu_context before[3];
            memcpy(before, torn->gpu.contexts, sizeof before);
            uint64_t busy_ns = torn->gpu.busy_ns, loaded = torn->gpu.loaded, switched_ns = torn->gpu.switched_ns;
            advance(torn, now_ns);
            int32_t index = torn->gpu.step.context;
            if (index >= 0 && torn->gpu.contexts[index].state != SIMGPU_CONTEXT_FREE) {
                torn->gpu.contexts[index].completed = before[index].completed;
                torn->gpu.contexts[index].completed_ns = before[index].completed_ns;
            }
            torn->gpu.busy_ns = busy_ns;
            torn->gpu.loaded = loaded;
            torn->gpu.switched_ns = switched_ns;
            torn->gpu.step.valid = 1;
            engine_recover(&torn->gpu, torn->processes, 0);
            REQUIRE(torn->gpu.step.valid == 0);
            REQUIRE(memcmp(torn->gpu.contexts, whole->gpu.contexts, sizeof before) == 0);
            REQUIRE(torn->gpu.busy_ns == whole->gpu.busy_ns && torn->gpu.time_ns == whole->gpu.time_ns);
            REQUIRE(torn->gpu.loaded == whole->gpu.loaded && torn->gpu.switched_ns == whole->gpu.switched_ns);
        }
        REQUIRE(whole->gpu.log_count == torn->gpu.log_count);
        free(whole);
        free(torn);
    }
}
