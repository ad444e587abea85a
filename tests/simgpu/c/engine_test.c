/* The engine on invented times. Built with sanitizers and run by test_engine.py, one property a call. */
#include <stdlib.h>
#include <string.h>

#include "machine/engine/engine.h"
#include "property.h"

#define MS 1000000ull
#define US 1000ull
#define START (1000 * MS)

struct bench {
    struct simgpu_gpu gpu;
    struct simgpu_process processes[SIMGPU_PROCESSES];
    uint32_t scheduling;
    uint64_t queued_ns[SIMGPU_CONTEXTS];
};

static struct bench *make(uint32_t scheduling, uint32_t contexts) {
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

/* The same, where a switch between contexts takes so long. */
static struct bench *make_paced(uint32_t scheduling, uint32_t contexts, uint64_t switch_ns) {
    struct bench *bench = make(scheduling, contexts);
    bench->gpu.switch_ns = switch_ns;
    return bench;
}

static uint64_t push_kind(struct bench *bench, uint32_t index, uint64_t at_ns, uint64_t duration_ns, uint32_t kind) {
    struct simgpu_context *context = &bench->gpu.contexts[index];
    uint64_t number = context->tail;
    bench->queued_ns[index] += duration_ns;
    bench->gpu.rings[index].entries[number % SIMGPU_RING] = (struct simgpu_entry){
        .enqueue_ns = at_ns, .duration_ns = duration_ns, .queued_ns = bench->queued_ns[index], .kind = kind};
    context->tail++;
    return number;
}

static uint64_t push(struct bench *bench, uint32_t index, uint64_t at_ns, uint64_t duration_ns) {
    return push_kind(bench, index, at_ns, duration_ns, SIMGPU_KERNEL);
}

static void advance(struct bench *bench, uint64_t to_ns) {
    engine_advance(&bench->gpu, bench->processes, 0, bench->scheduling, to_ns);
}

static const struct simgpu_log_entry *logged(const struct bench *bench, uint64_t number) {
    REQUIRE(number < bench->gpu.log_count);
    return &bench->gpu.log[number % SIMGPU_LOG];
}

static uint64_t ended_ns(const struct bench *bench, uint32_t index, uint64_t number) {
    return bench->gpu.rings[index].entries[number % SIMGPU_RING].end_ns;
}

/* ---- one queue ---- */

static void a_kernel_starts_after_the_launch_latency_and_runs_its_length(void) {
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

static void queued_kernels_follow_without_a_gap(void) {
    struct bench *bench = make(SIMGPU_FIFO, 1);
    for (int index = 0; index < 100; index++)
        push(bench, 0, START, 10 * US);
    advance(bench, START + 100 * MS);
    for (uint64_t index = 1; index < 100; index++)
        REQUIRE(logged(bench, index)->begin_ns == logged(bench, index - 1)->end_ns);
    free(bench);
}

static void a_kernel_that_runs_counts_up_to_now(void) {
    struct bench *bench = make(SIMGPU_FIFO, 1);
    push(bench, 0, START, 10 * MS);
    advance(bench, START + 4 * MS + ENGINE_LAUNCH_LATENCY_NS);
    REQUIRE(bench->processes[0].executed_ns[0] == 4 * MS);
    REQUIRE(bench->gpu.log_count == 0);
    REQUIRE(bench->gpu.contexts[0].completed == 0);
    free(bench);
}

static void kernels_of_no_length_end(void) {
    struct bench *bench = make(SIMGPU_TIMESLICE, 2);
    for (int index = 0; index < 50; index++)
        push(bench, (uint32_t)index % 2, START, 0);
    advance(bench, START + MS);
    REQUIRE(bench->gpu.contexts[0].completed == 25 && bench->gpu.contexts[1].completed == 25);
    REQUIRE(bench->gpu.time_ns == START + MS);
    free(bench);
}

/* ---- several ---- */

static void fifo_runs_what_was_queued_first_to_its_end(void) {
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

static void timeslice_takes_turns_and_goes_on_inside_a_kernel(void) {
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

static void timeslice_gives_equal_parts_to_short_and_long_kernels(void) {
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

static void a_context_with_nothing_ready_gives_its_turn_up(void) {
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

static void a_host_function_holds_its_own_queue_and_no_other(void) {
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

/* ---- switches between contexts ---- */

#define SWITCH_NS (250 * US)

/* Between two intervals of the log nothing ran for just so long where the context changed, and else not at all. */
static void require_gaps(const struct bench *bench) {
    for (uint64_t number = 1; number < bench->gpu.log_count; number++) {
        const struct simgpu_log_entry *before = logged(bench, number - 1), *after = logged(bench, number);
        REQUIRE(after->begin_ns - before->end_ns == (before->context == after->context ? 0 : bench->gpu.switch_ns));
    }
}

static void contexts_that_alternate_in_fifo_pay_for_each_switch_and_nobody_is_charged(void) {
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

static void a_turn_in_timeslice_is_whole_beside_the_switch(void) {
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

static void a_context_alone_never_pays_for_a_switch(void) {
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

static void a_gpu_that_idled_still_holds_the_context_that_ran_last(void) {
    struct bench *bench = make_paced(SIMGPU_FIFO, 2, SWITCH_NS);
    push(bench, 0, START, 1 * MS);
    push(bench, 0, START + 10 * MS, 1 * MS);
    push(bench, 1, START + 20 * MS, 1 * MS);
    advance(bench, START + 100 * MS);
    REQUIRE(logged(bench, 1)->begin_ns == START + 10 * MS + ENGINE_LAUNCH_LATENCY_NS);
    REQUIRE(logged(bench, 2)->begin_ns == START + 20 * MS + ENGINE_LAUNCH_LATENCY_NS + SWITCH_NS);
    free(bench);
}

static void a_mark_is_reached_in_its_contexts_turn_and_is_no_work(void) {
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

static void another_context_in_the_same_place_is_switched_to(void) {
    struct bench *bench = make_paced(SIMGPU_FIFO, 1, SWITCH_NS);
    push(bench, 0, START, 1 * MS);
    advance(bench, START + 5 * MS);
    bench->gpu.contexts[0].id = 99;
    push(bench, 0, START + 10 * MS, 1 * MS);
    advance(bench, START + 20 * MS);
    REQUIRE(logged(bench, 1)->begin_ns == START + 10 * MS + ENGINE_LAUNCH_LATENCY_NS + SWITCH_NS);
    free(bench);
}

static void who_dies_while_it_is_switched_to_ran_nothing(void) {
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

/* ---- looking ---- */

static uint64_t random_state;
static uint64_t random_below(uint64_t limit) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % limit;
}

static bool same_interval(const struct simgpu_log_entry *a, const struct simgpu_log_entry *b) {
    return memcmp(a, b, sizeof *a) == 0;
}

static void it_makes_no_difference_when_somebody_looks(void) {
    for (uint32_t scheduling = 0; scheduling < 2; scheduling++) {
        for (uint64_t seed = 1; seed <= 20 * times; seed++) {
            uint64_t switch_ns = seed % 2 * SWITCH_NS;
            struct bench *often = make_paced(scheduling, 4, switch_ns), *once = make_paced(scheduling, 4, switch_ns);
            uint64_t now_ns = START;
            random_state = seed * 7919;
            for (int index = 0; index < 300; index++) {
                uint32_t context = (uint32_t)random_below(4);
                uint64_t length_ns = random_below(4) ? random_below(200 * US) : random_below(7 * MS);
                now_ns += random_below(3) ? random_below(100 * US) : random_below(4 * MS);
                advance(often, now_ns);
                push(often, context, now_ns, length_ns);
                push(once, context, now_ns, length_ns);
                advance(often, now_ns + random_below(2));
            }
            advance(often, now_ns + 3000 * MS);
            advance(once, now_ns + 3000 * MS);
            REQUIRE(often->gpu.log_count == once->gpu.log_count);
            for (uint64_t index = 0; index < once->gpu.log_count; index++)
                REQUIRE(same_interval(logged(often, index), logged(once, index)));
            free(often);
            free(once);
        }
    }
}

static void the_log_adds_up_to_what_was_executed(void) {
    for (uint32_t variant = 0; variant < 4; variant++) {
        struct bench *bench = make_paced(variant % 2, 5, variant / 2 * SWITCH_NS);
        uint64_t now_ns = START, sums[5] = {0}, total_ns = 0, before_ns = 0;
        random_state = 4242;
        for (int index = 0; index < 2000; index++) {
            now_ns += random_below(500 * US);
            push(bench, (uint32_t)random_below(5), now_ns, random_below(900 * US));
        }
        advance(bench, now_ns + 5000 * MS);
        for (uint64_t index = 0; index < bench->gpu.log_count; index++) {
            const struct simgpu_log_entry *entry = logged(bench, index);
            REQUIRE(entry->begin_ns >= before_ns && entry->end_ns >= entry->begin_ns);
            before_ns = entry->end_ns;
            sums[entry->context] += entry->end_ns - entry->begin_ns;
        }
        for (uint32_t index = 0; index < 5; index++) {
            REQUIRE(sums[index] == bench->processes[index].executed_ns[0]);
            REQUIRE(sums[index] == bench->queued_ns[index]);
            total_ns += sums[index];
        }
        REQUIRE(total_ns == bench->gpu.busy_ns);
        free(bench);
    }
}

/* ---- prediction ---- */

static void the_end_is_foretold_in_fifo_exactly(void) {
    struct bench *bench = make(SIMGPU_FIFO, 4);
    uint64_t at_ns = START, last[4] = {0}, foretold[4];
    random_state = 99;
    for (int index = 0; index < 400; index++) {
        uint32_t context = (uint32_t)random_below(4);
        last[context] = push(bench, context, at_ns += 10, random_below(2 * MS));
    }
    advance(bench, START + 7 * MS);
    for (uint32_t index = 0; index < 4; index++)
        foretold[index] = engine_earliest_end_ns(&bench->gpu, SIMGPU_FIFO, index, last[index]);
    advance(bench, START + 10000 * MS);
    for (uint32_t index = 0; index < 4; index++)
        REQUIRE(foretold[index] == ended_ns(bench, index, last[index]));
    free(bench);
}

static void the_end_behind_one_switch_is_foretold_exactly(void) {
    for (uint32_t scheduling = 0; scheduling < 2; scheduling++) {
        struct bench *bench = make_paced(scheduling, 2, SWITCH_NS);
        push(bench, 0, START, 1 * MS);
        uint64_t last = push(bench, 1, START + 1, 1 * MS);
        uint64_t end_ns = START + ENGINE_LAUNCH_LATENCY_NS + 2 * MS + SWITCH_NS;
        /* Before the first runs, while it does, within the switch, and behind it. */
        static const uint64_t LOOKS_NS[] = {0, 500 * US, 1100 * US, 1500 * US};
        for (size_t look = 0; look < sizeof LOOKS_NS / sizeof *LOOKS_NS; look++) {
            advance(bench, START + ENGINE_LAUNCH_LATENCY_NS + LOOKS_NS[look]);
            REQUIRE(engine_earliest_end_ns(&bench->gpu, scheduling, 1, last) == end_ns);
        }
        advance(bench, START + 10 * MS);
        REQUIRE(ended_ns(bench, 1, last) == end_ns);
        free(bench);
    }
}

static void the_end_is_never_foretold_too_late(void) {
    for (uint32_t scheduling = 0; scheduling < 2; scheduling++) {
        for (uint64_t seed = 1; seed <= 30 * times; seed++) {
            struct bench *bench = make_paced(scheduling, 4, seed % 2 * SWITCH_NS);
            uint64_t at_ns = START, numbers[100], foretold[100];
            uint32_t contexts[100];
            random_state = seed * 104729;
            for (int index = 0; index < 100; index++) {
                contexts[index] = (uint32_t)random_below(4);
                numbers[index] = push(bench, contexts[index], at_ns += random_below(20 * US), random_below(3 * MS));
            }
            advance(bench, at_ns + random_below(30 * MS));
            for (int index = 0; index < 100; index++)
                foretold[index] = engine_earliest_end_ns(&bench->gpu, scheduling, contexts[index], numbers[index]);
            uint64_t looked_ns = bench->gpu.time_ns;
            advance(bench, START + 10000 * MS);
            for (int index = 0; index < 100; index++) {
                uint64_t end_ns = ended_ns(bench, contexts[index], numbers[index]);
                REQUIRE(foretold[index] <= (end_ns > looked_ns ? end_ns : looked_ns));
            }
            free(bench);
        }
    }
}

/* ---- death ---- */

static void the_dead_ones_queue_is_dropped_after_the_kernel_that_runs(void) {
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

static void the_dead_ones_kernel_ends_with_its_turn(void) {
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

static void a_dead_context_that_does_not_run_is_freed_at_once(void) {
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

static void a_step_that_was_interrupted_is_done_again(void) {
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

static const struct property TESTS[] = {
    TEST(a_kernel_starts_after_the_launch_latency_and_runs_its_length),
    TEST(queued_kernels_follow_without_a_gap),
    TEST(a_kernel_that_runs_counts_up_to_now),
    TEST(kernels_of_no_length_end),
    TEST(fifo_runs_what_was_queued_first_to_its_end),
    TEST(timeslice_takes_turns_and_goes_on_inside_a_kernel),
    TEST(timeslice_gives_equal_parts_to_short_and_long_kernels),
    TEST(a_context_with_nothing_ready_gives_its_turn_up),
    TEST(a_host_function_holds_its_own_queue_and_no_other),
    TEST(contexts_that_alternate_in_fifo_pay_for_each_switch_and_nobody_is_charged),
    TEST(a_turn_in_timeslice_is_whole_beside_the_switch),
    TEST(a_context_alone_never_pays_for_a_switch),
    TEST(a_gpu_that_idled_still_holds_the_context_that_ran_last),
    TEST(a_mark_is_reached_in_its_contexts_turn_and_is_no_work),
    TEST(another_context_in_the_same_place_is_switched_to),
    TEST(who_dies_while_it_is_switched_to_ran_nothing),
    TEST(it_makes_no_difference_when_somebody_looks),
    TEST(the_log_adds_up_to_what_was_executed),
    TEST(the_end_is_foretold_in_fifo_exactly),
    TEST(the_end_behind_one_switch_is_foretold_exactly),
    TEST(the_end_is_never_foretold_too_late),
    TEST(the_dead_ones_queue_is_dropped_after_the_kernel_that_runs),
    TEST(the_dead_ones_kernel_ends_with_its_turn),
    TEST(a_dead_context_that_does_not_run_is_freed_at_once),
    TEST(a_step_that_was_interrupted_is_done_again),
};

int main(int argc, char **argv) { return run_property(TESTS, sizeof TESTS / sizeof *TESTS, argc, argv); }
