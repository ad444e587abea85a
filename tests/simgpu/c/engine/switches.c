#include "bench.h"

/* Between two intervals of the log nothing ran for just so long where the context changed, and else not at all. */
static void require_gaps(const struct bench *bench) {
    for (uint64_t number = 1; number < bench->gpu.log_count; number++) {
        const struct simgpu_log_entry *before = logged(bench, number - 1), *after = logged(bench, number);
        REQUIRE(after->begin_ns - before->end_ns == (before->context == after->context ? 0 : bench->gpu.switch_ns));
    }
}

void contexts_that_alternate_in_fifo_pay_for_each_switch_and_nobody_is_charged(void) {
    struct bench *bench = make_paced(SIMGPU_FIFO, 2, SWITCH_NS);
    for (uint32_t index = 0; index < 20; index++)
        push(bench, index % 2, START + index, 1 * MS);
    advance(bench, START + 100 * MS);
    REQUIRE(bench->gpu.log_count == 20);
    require_gaps(bench);
    REQUIRE(bench->processes[0].executed_ns[0] == 10 * MS && bench->processes[1].executed_ns[0] == 10 * MS);
    REQUIRE(bench->gpu.busy_ns == 20 * MS);
    REQUIRE(logged(bench, 19)->end_ns - logged(bench, 0)->begin_ns == 20 * MS + 19 * SWITCH_NS);
    free(bench);
}

void a_turn_in_timeslice_is_whole_beside_the_switch(void) {
    struct bench *bench = make_paced(SIMGPU_TIMESLICE, 2, SWITCH_NS);
    push(bench, 0, START, 6 * MS);
    push(bench, 1, START, 6 * MS);
    advance(bench, START + 100 * MS);
    REQUIRE(bench->gpu.log_count == 6);
    require_gaps(bench);
    for (uint64_t number = 0; number < 6; number++) {
        REQUIRE(logged(bench, number)->context == number % 2);
        REQUIRE(logged(bench, number)->end_ns - logged(bench, number)->begin_ns == ENGINE_TURN_NS);
    }
    REQUIRE(bench->gpu.busy_ns == 12 * MS);
    free(bench);
}

void a_context_alone_never_pays_for_a_switch(void) {
    for (uint32_t scheduling = 0; scheduling < 2; scheduling++) {
        struct bench *bench = make_paced(scheduling, 2, SWITCH_NS);
        for (uint64_t index = 0; index < 50; index++)
            push(bench, 1, START + index * MS, 300 * US);
        advance(bench, START + 100 * MS);
        REQUIRE(bench->gpu.log_count == 50);
        for (uint64_t index = 0; index < 50; index++)
            REQUIRE(logged(bench, index)->begin_ns == START + index * MS + ENGINE_LAUNCH_LATENCY_NS);
        free(bench);
    }
}

void a_gpu_that_idled_still_holds_the_context_that_ran_last(void) {
    struct bench *bench = make_paced(SIMGPU_FIFO, 2, SWITCH_NS);
    push(bench, 0, START, 1 * MS);
    push(bench, 0, START + 10 * MS, 1 * MS);
    push(bench, 1, START + 20 * MS, 1 * MS);
    advance(bench, START + 100 * MS);
    REQUIRE(logged(bench, 1)->begin_ns == START + 10 * MS + ENGINE_LAUNCH_LATENCY_NS);
    REQUIRE(logged(bench, 2)->begin_ns == START + 20 * MS + ENGINE_LAUNCH_LATENCY_NS + SWITCH_NS);
    free(bench);
}

void a_mark_is_reached_in_its_contexts_turn_and_is_no_work(void) {
    struct bench *bench = make_paced(SIMGPU_FIFO, 2, SWITCH_NS);
    uint64_t free_ns = START + ENGINE_LAUNCH_LATENCY_NS + 3 * MS;
    REQUIRE(!engine_is_away(&bench->gpu, 0) && !engine_is_away(&bench->gpu, 1));
    push(bench, 0, START, 3 * MS);
    uint64_t mark = push_kind(bench, 1, START + 1 * MS, 0, SIMGPU_ORDER);
    push(bench, 1, START + 1 * MS, 1 * MS);
    advance(bench, START + 1 * MS);
    REQUIRE(!engine_is_away(&bench->gpu, 0) && engine_is_away(&bench->gpu, 1));
    advance(bench, free_ns + SWITCH_NS / 2);
    REQUIRE(engine_is_away(&bench->gpu, 0) && engine_is_away(&bench->gpu, 1));
    advance(bench, START + 10 * MS);
    REQUIRE(engine_is_away(&bench->gpu, 0) && !engine_is_away(&bench->gpu, 1));
    REQUIRE(ended_ns(bench, 1, mark) == free_ns + SWITCH_NS);
    REQUIRE(ended_ns(bench, 1, mark + 1) == free_ns + SWITCH_NS + 1 * MS);
    REQUIRE(bench->gpu.log_count == 2 && bench->processes[1].entries[0] == 1);
    free(bench);
}

void another_context_in_the_same_place_is_switched_to(void) {
    struct bench *bench = make_paced(SIMGPU_FIFO, 1, SWITCH_NS);
    push(bench, 0, START, 1 * MS);
    advance(bench, START + 5 * MS);
    bench->gpu.contexts[0].id = 99;
    push(bench, 0, START + 10 * MS, 1 * MS);
    advance(bench, START + 20 * MS);
    REQUIRE(logged(bench, 1)->begin_ns == START + 10 * MS + ENGINE_LAUNCH_LATENCY_NS + SWITCH_NS);
    free(bench);
}

void who_dies_while_it_is_switched_to_ran_nothing(void) {
    for (uint32_t scheduling = 0; scheduling < 2; scheduling++) {
        struct bench *bench = make_paced(scheduling, 2, SWITCH_NS);
        push(bench, 0, START, 1 * MS);
        push(bench, 1, START + 1, 1 * MS);
        push(bench, 0, START + 2, 1 * MS);
        uint64_t switches_ns = START + ENGINE_LAUNCH_LATENCY_NS + (scheduling == SIMGPU_FIFO ? 1 : 2) * MS;
        advance(bench, switches_ns + SWITCH_NS / 2);
        REQUIRE(bench->gpu.running == 1);
        engine_condemn(&bench->gpu, 1);
        REQUIRE(bench->gpu.contexts[1].state == SIMGPU_CONTEXT_FREE);
        push(bench, 0, switches_ns + SWITCH_NS / 2, 1 * MS);
        advance(bench, START + 100 * MS);
        REQUIRE(bench->processes[1].executed_ns[0] == 0 && bench->processes[0].executed_ns[0] == 3 * MS);
        /* The switch goes to its end, and another one back. */
        uint64_t number = scheduling == SIMGPU_FIFO ? 1 : 2;
        REQUIRE(logged(bench, number)->begin_ns == switches_ns + 2 * SWITCH_NS);
        free(bench);
    }
}
