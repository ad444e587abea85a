#include "bench.h"

void the_end_is_foretold_in_fifo_exactly(void) {
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

void the_end_behind_one_switch_is_foretold_exactly(void) {
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

void the_end_is_never_foretold_too_late(void) {
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
