/* The engine where engines overlap, on invented times. Built with sanitizers and run by test_engine.py, one property a
 * call. */
#include <stdlib.h>
#include <string.h>

#include "machine/engine/engine.h"
#include "property.h"

#define MS 1000000ull
#define US 1000ull
#define START (1000 * MS)
#define SWITCH_NS (150 * US)

enum { CONTEXTS = 3, STREAMS = 4, PIECES = 300, PROCESSORS = 10, MOST_BLOCKS = PROCESSORS * ENGINE_BLOCKS };

struct bench {
    struct simgpu_gpu gpu;
    struct simgpu_orders orders[CONTEXTS];
    struct simgpu_process processes[CONTEXTS];
    uint32_t scheduling;
    uint64_t last[CONTEXTS][STREAMS]; /* one past the last entry of each stream */
};

static struct bench *make(uint32_t scheduling, uint64_t switch_ns) {
    struct bench *bench = calloc(1, sizeof *bench);
    REQUIRE(bench);
    bench->scheduling = scheduling;
    bench->gpu.running = -1;
    bench->gpu.time_ns = START;
    bench->gpu.switch_ns = switch_ns;
    bench->gpu.model.multiprocessors = PROCESSORS;
    bench->gpu.orders_bytes = offsetof(struct bench, orders) - offsetof(struct bench, gpu);
    for (uint32_t index = 0; index < CONTEXTS; index++) {
        struct simgpu_context *context = &bench->gpu.contexts[index];
        *context =
            (struct simgpu_context){.state = SIMGPU_CONTEXT_LIVE, .process = index, .id = index + 1, .turn = bench->gpu.turns++};
        bench->gpu.live[0] |= 1ull << index;
        bench->processes[index].id = index + 1;
    }
    return bench;
}

/* Stream 0 is the legacy one, 1 and 2 wait for it, 3 does not. */
static uint32_t scope_of(uint32_t stream) {
    return stream == 0 ? SIMGPU_SCOPE_LEGACY : stream < 3 ? SIMGPU_SCOPE_BLOCKING : SIMGPU_SCOPE_NONE;
}

struct piece {
    uint32_t context, stream, kind, place;
    uint64_t duration_ns;
    uint64_t waits_after; /* 0: for nothing else */
};

static uint64_t push(struct bench *bench, const struct piece *piece, uint64_t at_ns) {
    struct simgpu_context *context = &bench->gpu.contexts[piece->context];
    uint64_t number = context->tail, *last = &bench->last[piece->context][piece->stream];
    bench->gpu.rings[piece->context].entries[number] = (struct simgpu_entry){
        .enqueue_ns = at_ns, .duration_ns = piece->duration_ns, .kind = piece->kind, .stream = piece->stream};
    bench->orders[piece->context].orders[number] =
        (struct simgpu_order){.behind = *last ? (uint32_t)(number + 1 - *last) : 0,
                              .waits = piece->waits_after ? (uint32_t)(number + 1 - piece->waits_after) : 0,
                              .place = piece->place,
                              .scope = scope_of(piece->stream)};
    *last = ++context->tail;
    return number;
}

static uint64_t random_state;
static uint64_t random_below(uint64_t limit) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % limit;
}

static struct piece random_piece(const struct bench *bench) {
    struct piece piece = {
        .context = (uint32_t)random_below(CONTEXTS),
        .stream = (uint32_t)random_below(8) % STREAMS,
        .kind = SIMGPU_KERNEL,
        .place = (uint32_t)random_below(MOST_BLOCKS + 10),
        .duration_ns = random_below(4) ? random_below(200 * US) : random_below(5 * MS),
    };
    uint64_t tail = bench->gpu.contexts[piece.context].tail;
    switch (random_below(6)) {
    case 0:
        piece.kind = SIMGPU_ORDER;
        piece.duration_ns = 0;
        piece.waits_after = tail ? 1 + random_below(tail) : 0;
        break;
    case 1:
        piece.kind = SIMGPU_COPY;
        piece.place = random_below(2) ? SIMGPU_PLACE_UP : SIMGPU_PLACE_DOWN;
        break;
    default: break;
    }
    return piece;
}

static void advance(struct bench *bench, uint64_t to_ns) {
    engine_advance(&bench->gpu, bench->processes, 0, bench->scheduling, to_ns);
}

static const struct simgpu_log_entry *logged(const struct bench *bench, uint64_t number) {
    REQUIRE(number < bench->gpu.log_count);
    return &bench->gpu.log[number];
}

static const struct simgpu_entry *entry(const struct bench *bench, uint32_t context, uint64_t number) {
    return &bench->gpu.rings[context].entries[number];
}

/* Queues all pieces; looks meanwhile where it is to be looked often. */
static uint64_t fill(struct bench *bench, uint64_t seed, bool often) {
    uint64_t now_ns = START;
    random_state = seed * 7919;
    for (int index = 0; index < PIECES; index++) {
        struct piece piece = random_piece(bench);
        uint64_t tick_ns;
        now_ns += random_below(3) ? random_below(100 * US) : random_below(3 * MS);
        tick_ns = random_below(2);
        if (often)
            advance(bench, now_ns);
        push(bench, &piece, now_ns);
        if (often)
            advance(bench, now_ns + tick_ns);
    }
    return now_ns;
}

#define ALL_VARIANTS(scheduling, seed)                          \
    for (uint32_t scheduling = 0; scheduling < 2; scheduling++) \
        for (uint64_t seed = 1; seed <= 10 * times; seed++)

static void it_makes_no_difference_when_somebody_looks(void) {
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

static void what_runs_together_has_room_and_one_context(void) {
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

static void everything_ends_behind_what_it_waits_for(void) {
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

static void time_in_which_anything_ran_is_counted_once(void) {
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

static void the_end_is_never_foretold_too_late(void) {
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

static void what_a_dead_one_runs_ends_and_nothing_else_of_it_begins(void) {
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

static void a_step_that_was_interrupted_is_done_again(void) {
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

static const struct property TESTS[] = {
    TEST(it_makes_no_difference_when_somebody_looks), TEST(what_runs_together_has_room_and_one_context),
    TEST(everything_ends_behind_what_it_waits_for),   TEST(time_in_which_anything_ran_is_counted_once),
    TEST(the_end_is_never_foretold_too_late),         TEST(what_a_dead_one_runs_ends_and_nothing_else_of_it_begins),
    TEST(a_step_that_was_interrupted_is_done_again),
};

int main(int argc, char **argv) { return run_property(TESTS, sizeof TESTS / sizeof *TESTS, argc, argv); }
