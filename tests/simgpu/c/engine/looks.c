#include <string.h>

#include "bench.h"

static bool same_interval(const struct simgpu_log_entry *a, const struct simgpu_log_entry *b) {
    return memcmp(a, b, sizeof *a) == 0;
}

void it_makes_no_difference_when_somebody_looks(void) {
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

void the_log_adds_up_to_what_was_executed(void) {
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
