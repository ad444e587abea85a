#include <string.h>

#include "bench.h"

void it_makes_no_difference_when_somebody_looks(void) {
    ALL_VARIANTS(scheduling, seed) {
        struct bench *often = make(scheduling, seed % 2 * SWITCH_NS), *once = make(scheduling, seed % 2 * SWITCH_NS);
        uint64_t end_ns = fill(often, seed, true) + 3000 * MS;
        fill(once, seed, false);
        advance(often, end_ns);
        advance(once, end_ns);
        REQUIRE(often->gpu.log_count == once->gpu.log_count && often->gpu.busy_ns == once->gpu.busy_ns);
        for (uint64_t index = 0; index < once->gpu.log_count; index++)
            REQUIRE(memcmp(logged(often, index), logged(once, index), sizeof *logged(once, index)) == 0);
        free(often);
        free(once);
    }
}

static bool at(const struct simgpu_log_entry *interval, uint64_t time_ns) {
    return interval->begin_ns <= time_ns && time_ns < interval->end_ns;
}

void what_runs_together_has_room_and_one_context(void) {
    ALL_VARIANTS(scheduling, seed) {
        struct bench *bench = make(scheduling, seed % 2 * SWITCH_NS);
        advance(bench, fill(bench, seed, false) + 3000 * MS);
        for (uint64_t index = 0; index < bench->gpu.log_count; index++) {
            uint64_t time_ns = logged(bench, index)->begin_ns, blocks = 0, copies[2] = {0};
            for (uint64_t other = 0; other < bench->gpu.log_count; other++) {
                const struct simgpu_log_entry *interval = logged(bench, other);
                uint32_t place = bench->orders[interval->context].orders[interval->entry].place;
                if (!at(interval, time_ns))
                    continue;
                REQUIRE(interval->context == logged(bench, index)->context || !at(logged(bench, index), time_ns));
                if (place == SIMGPU_PLACE_UP || place == SIMGPU_PLACE_DOWN)
                    copies[place - SIMGPU_PLACE_UP]++;
                else
                    blocks += place == SIMGPU_PLACE_ALL || place > MOST_BLOCKS ? MOST_BLOCKS : place;
            }
            REQUIRE(blocks <= MOST_BLOCKS && copies[0] <= 1 && copies[1] <= 1);
        }
        free(bench);
    }
}

void everything_ends_behind_what_it_waits_for(void) {
    ALL_VARIANTS(scheduling, seed) {
        struct bench *bench = make(scheduling, seed % 2 * SWITCH_NS);
        advance(bench, fill(bench, seed, false) + 3000 * MS);
        for (uint32_t context = 0; context < CONTEXTS; context++) {
            uint64_t legacy_ns = 0, blocking_ns = 0;
            REQUIRE(bench->gpu.contexts[context].completed == bench->gpu.contexts[context].tail);
            for (uint64_t number = 0; number < bench->gpu.contexts[context].tail; number++) {
                const struct simgpu_order *order = &bench->orders[context].orders[number];
                uint64_t begin_ns = entry(bench, context, number)->begin_ns;
                uint64_t end_ns = entry(bench, context, number)->end_ns;
                REQUIRE(order->state == SIMGPU_DONE && begin_ns <= end_ns);
                REQUIRE(!order->behind || entry(bench, context, number - order->behind)->end_ns <= begin_ns);
                REQUIRE(!order->waits || entry(bench, context, number - order->waits)->end_ns <= begin_ns);
                REQUIRE(order->scope == SIMGPU_SCOPE_NONE || legacy_ns <= begin_ns);
                REQUIRE(order->scope != SIMGPU_SCOPE_LEGACY || blocking_ns <= begin_ns);
                if (order->scope == SIMGPU_SCOPE_LEGACY && legacy_ns < end_ns)
                    legacy_ns = end_ns;
                if (order->scope == SIMGPU_SCOPE_BLOCKING && blocking_ns < end_ns)
                    blocking_ns = end_ns;
            }
        }
        free(bench);
    }
}
