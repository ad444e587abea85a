#include "bench.h"

struct bench *make(uint32_t scheduling, uint64_t switch_ns) {
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

void advance(struct bench *bench, uint64_t to_ns) { engine_advance(&bench->gpu, bench->processes, 0, bench->scheduling, to_ns); }

const struct simgpu_log_entry *logged(const struct bench *bench, uint64_t number) {
    REQUIRE(number < bench->gpu.log_count);
    return &bench->gpu.log[number];
}

const struct simgpu_entry *entry(const struct bench *bench, uint32_t context, uint64_t number) {
    return &bench->gpu.rings[context].entries[number];
}

uint64_t fill(struct bench *bench, uint64_t seed, bool often) {
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
