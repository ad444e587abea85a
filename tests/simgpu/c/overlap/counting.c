#include "bench.h"

/* The log is in the order of ends: from its end on, what is before the earliest begin so far is new. */
static uint64_t union_ns(const struct bench *bench, int context) {
    uint64_t sum_ns = 0, counted_ns = UINT64_MAX;
    for (uint64_t number = bench->gpu.log_count; number-- > 0;) {
        const struct simgpu_log_entry *interval = logged(bench, number);
        uint64_t end_ns = interval->end_ns < counted_ns ? interval->end_ns : counted_ns;
        REQUIRE(number == 0 || logged(bench, number - 1)->end_ns <= interval->end_ns);
        if (context >= 0 && interval->context != (uint32_t)context)
            continue;
        if (interval->begin_ns < end_ns)
            sum_ns += end_ns - interval->begin_ns;
        if (interval->begin_ns < counted_ns)
            counted_ns = interval->begin_ns;
    }
    return sum_ns;
}

void time_in_which_anything_ran_is_counted_once(void) {
    ALL_VARIANTS(scheduling, seed) {
        struct bench *bench = make(scheduling, seed % 2 * SWITCH_NS);
        uint64_t ran_ns[CONTEXTS][PIECES] = {0}, asked_ns = 0;
        advance(bench, fill(bench, seed, false) + 3000 * MS);
        for (uint64_t index = 0; index < bench->gpu.log_count; index++)
            ran_ns[logged(bench, index)->context][logged(bench, index)->entry] +=
                logged(bench, index)->end_ns - logged(bench, index)->begin_ns;
        for (uint32_t context = 0; context < CONTEXTS; context++) {
            for (uint64_t number = 0; number < bench->gpu.contexts[context].tail; number++) {
                REQUIRE(ran_ns[context][number] == entry(bench, context, number)->duration_ns);
                asked_ns += ran_ns[context][number];
            }
            REQUIRE(bench->processes[context].executed_ns[0] == union_ns(bench, (int)context));
        }
        REQUIRE(bench->gpu.busy_ns == union_ns(bench, -1));
        /* And something did overlap. */
        REQUIRE(bench->gpu.busy_ns < asked_ns);
        free(bench);
    }
}
