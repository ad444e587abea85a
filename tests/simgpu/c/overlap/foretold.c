#include "bench.h"

void the_end_is_never_foretold_too_late(void) {
    ALL_VARIANTS(scheduling, seed) {
        struct bench *bench = make(scheduling, seed % 2 * SWITCH_NS);
        static uint64_t foretold[CONTEXTS][PIECES];
        advance(bench, fill(bench, seed, false) - random_below(100 * MS));
        uint64_t looked_ns = bench->gpu.time_ns;
        for (uint32_t context = 0; context < CONTEXTS; context++) {
            for (uint64_t number = 0; number < bench->gpu.contexts[context].tail; number++) {
                foretold[context][number] = engine_earliest_end_ns(&bench->gpu, scheduling, context, number);
                REQUIRE(foretold[context][number] > looked_ns || bench->orders[context].orders[number].state == SIMGPU_DONE);
            }
        }
        advance(bench, looked_ns + 5000 * MS);
        for (uint32_t context = 0; context < CONTEXTS; context++) {
            for (uint64_t number = 0; number < bench->gpu.contexts[context].tail; number++) {
                uint64_t end_ns = entry(bench, context, number)->end_ns;
                REQUIRE(foretold[context][number] <= (end_ns > looked_ns ? end_ns : looked_ns) + 10 * US);
            }
        }
        free(bench);
    }
}
