#include "bench.h"

void a_kernel_starts_after_the_launch_latency_and_runs_its_length(void) {
    struct bench *bench = make(SIMGPU_FIFO, 1);
    push(bench, 0, START + 5 * MS, 3 * MS);
    advance(bench, START + 20 * MS);
    REQUIRE(bench->gpu.log_count == 1);
    REQUIRE(logged(bench, 0)->begin_ns == START + 5 * MS + ENGINE_LAUNCH_LATENCY_NS);
    REQUIRE(logged(bench, 0)->end_ns == logged(bench, 0)->begin_ns + 3 * MS);
    REQUIRE(logged(bench, 0)->last == 1);
    REQUIRE(bench->processes[0].executed_ns[0] == 3 * MS);
    REQUIRE(bench->gpu.contexts[0].completed == 1);
    free(bench);
}

void queued_kernels_follow_without_a_gap(void) {
    struct bench *bench = make(SIMGPU_FIFO, 1);
    for (int index = 0; index < 100; index++)
        push(bench, 0, START, 10 * US);
    advance(bench, START + 100 * MS);
    for (uint64_t index = 1; index < 100; index++)
        REQUIRE(logged(bench, index)->begin_ns == logged(bench, index - 1)->end_ns);
    free(bench);
}

void a_kernel_that_runs_counts_up_to_now(void) {
    struct bench *bench = make(SIMGPU_FIFO, 1);
    push(bench, 0, START, 10 * MS);
    advance(bench, START + 4 * MS + ENGINE_LAUNCH_LATENCY_NS);
    REQUIRE(bench->processes[0].executed_ns[0] == 4 * MS);
    REQUIRE(bench->gpu.log_count == 0);
    REQUIRE(bench->gpu.contexts[0].completed == 0);
    free(bench);
}

void kernels_of_no_length_end(void) {
    struct bench *bench = make(SIMGPU_TIMESLICE, 2);
    for (int index = 0; index < 50; index++)
        push(bench, (uint32_t)index % 2, START, 0);
    advance(bench, START + MS);
    REQUIRE(bench->gpu.contexts[0].completed == 25 && bench->gpu.contexts[1].completed == 25);
    REQUIRE(bench->gpu.time_ns == START + MS);
    free(bench);
}

/* ---- several ---- */

void fifo_runs_what_was_queued_first_to_its_end(void) {
    struct bench *bench = make(SIMGPU_FIFO, 3);
    push(bench, 2, START + 1, 5 * MS);
    push(bench, 1, START + 2, 1 * MS);
    push(bench, 0, START + 3, 2 * MS);
    push(bench, 2, START + 4, 1 * MS);
    advance(bench, START + 20 * MS);
    static const uint32_t ORDER[] = {2, 1, 0, 2};
    REQUIRE(bench->gpu.log_count == 4);
    for (uint64_t index = 0; index < 4; index++)
        REQUIRE(logged(bench, index)->context == ORDER[index]);
    free(bench);
}

void timeslice_takes_turns_and_goes_on_inside_a_kernel(void) {
    struct bench *bench = make(SIMGPU_TIMESLICE, 2);
    push(bench, 0, START, 5 * MS);
    push(bench, 1, START, 3 * MS);
    advance(bench, START + 20 * MS);
    static const uint32_t CONTEXT[] = {0, 1, 0, 1, 0};
    static const uint64_t LENGTH_MS[] = {2, 2, 2, 1, 1};
    static const int LAST[] = {0, 0, 0, 1, 1};
    REQUIRE(bench->gpu.log_count == 5);
    for (uint64_t index = 0; index < 5; index++) {
        REQUIRE(logged(bench, index)->context == CONTEXT[index]);
        REQUIRE(logged(bench, index)->end_ns - logged(bench, index)->begin_ns == LENGTH_MS[index] * MS);
        REQUIRE(logged(bench, index)->last == LAST[index]);
    }
    REQUIRE(bench->processes[0].executed_ns[0] == 5 * MS && bench->processes[1].executed_ns[0] == 3 * MS);
    free(bench);
}

void timeslice_gives_equal_parts_to_short_and_long_kernels(void) {
    struct bench *bench = make(SIMGPU_TIMESLICE, 2);
    for (int index = 0; index < 1000; index++)
        push(bench, 0, START, 100 * US);
    for (int index = 0; index < 10; index++)
        push(bench, 1, START, 10 * MS);
    advance(bench, START + 100 * MS + ENGINE_LAUNCH_LATENCY_NS);
    REQUIRE(bench->processes[0].executed_ns[0] == 50 * MS);
    REQUIRE(bench->processes[1].executed_ns[0] == 50 * MS);
    free(bench);
}

void a_context_with_nothing_ready_gives_its_turn_up(void) {
    struct bench *bench = make(SIMGPU_TIMESLICE, 2);
    push(bench, 0, START, 100 * US);
    push(bench, 1, START, 1 * MS);
    push(bench, 0, START + 110 * US, 100 * US);
    advance(bench, START + 10 * MS);
    REQUIRE(bench->gpu.log_count == 3);
    REQUIRE(logged(bench, 1)->context == 1);
    REQUIRE(logged(bench, 1)->begin_ns == logged(bench, 0)->end_ns);
    REQUIRE(logged(bench, 2)->begin_ns == logged(bench, 1)->end_ns);
    free(bench);
}

void a_host_function_holds_its_own_queue_and_no_other(void) {
    struct bench *bench = make(SIMGPU_FIFO, 2);
    push(bench, 0, START, 1 * MS);
    push_kind(bench, 0, START, 0, SIMGPU_HOST);
    push(bench, 0, START, 1 * MS);
    push(bench, 1, START + 1, 1 * MS);
    advance(bench, START + 10 * MS);
    REQUIRE(bench->gpu.contexts[0].completed == 1 && bench->gpu.contexts[1].completed == 1);
    bench->gpu.contexts[0].host_done_ns = START + 10 * MS;
    bench->gpu.contexts[0].host_done = 2;
    advance(bench, START + 20 * MS);
    REQUIRE(bench->gpu.contexts[0].completed == 3);
    REQUIRE(ended_ns(bench, 0, 2) == START + 11 * MS);
    free(bench);
}
