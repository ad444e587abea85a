#include <string.h>

#include "bench.h"

void what_a_dead_one_runs_ends_and_nothing_else_of_it_begins(void) {
    ALL_VARIANTS(scheduling, seed) {
        struct bench *bench = make(scheduling, seed % 2 * SWITCH_NS);
        advance(bench, fill(bench, seed, false) - random_below(100 * MS));
        uint64_t died_ns = bench->gpu.time_ns;
        for (uint32_t context = 0; context < 2; context++)
            engine_condemn(&bench->gpu, context);
        advance(bench, died_ns + 5000 * MS);
        for (uint32_t context = 0; context < CONTEXTS; context++)
            REQUIRE(bench->gpu.contexts[context].state == (context < 2 ? SIMGPU_CONTEXT_FREE : SIMGPU_CONTEXT_LIVE));
        REQUIRE(bench->gpu.contexts[2].completed == bench->gpu.contexts[2].tail);
        for (uint64_t index = 0; index < bench->gpu.log_count; index++)
            REQUIRE(logged(bench, index)->context == 2 || logged(bench, index)->begin_ns <= died_ns);
        free(bench);
    }
}

void a_step_that_was_interrupted_is_done_again(void) {
    ALL_VARIANTS(scheduling, seed) {
        struct bench *whole = make(scheduling, seed % 2 * SWITCH_NS), *torn = make(scheduling, seed % 2 * SWITCH_NS);
        fill(whole, seed, false);
        fill(torn, seed, false);
        for (uint64_t now_ns = START + 1; now_ns < START + 400 * MS; now_ns += 5 * MS / 3) {
            static struct simgpu_context contexts[CONTEXTS];
            static struct simgpu_orders orders[CONTEXTS];
            memcpy(contexts, torn->gpu.contexts, sizeof contexts);
            memcpy(orders, torn->orders, sizeof orders);
            advance(whole, now_ns);
            advance(torn, now_ns);
            /* A process died in its last step: that is written down, but half of what it writes is as it was before. */
            const struct simgpu_step *step = &torn->gpu.step;
            if (step->context >= 0) {
                torn->gpu.contexts[step->context].completed = contexts[step->context].completed;
                torn->gpu.contexts[step->context].ran_ns = contexts[step->context].ran_ns;
                if (step->writes_entry)
                    torn->orders[step->context].orders[step->ring_number] = orders[step->context].orders[step->ring_number];
            }
            torn->gpu.step.valid = 1;
            engine_recover(&torn->gpu, torn->processes, 0);
            REQUIRE(memcmp(torn->gpu.contexts, whole->gpu.contexts, sizeof contexts) == 0);
            REQUIRE(memcmp(torn->orders, whole->orders, sizeof orders) == 0);
            REQUIRE(torn->gpu.log_count == whole->gpu.log_count);
        }
        free(whole);
        free(torn);
    }
}
