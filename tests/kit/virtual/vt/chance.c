/* All that is left to chance, from the seed. */
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>

#include "machine.h"

enum {
    PREEMPTED_NS = 50000,
    WAKES = 2000, /* of so many wakes ... */
    LATE = 40,    /* ... so many are a little late, and one very late */
    LATE_NS = 60000,
    LONG_NS = 3000000,
};

struct stream streams[STREAMS];
static uint64_t delays;

void chance_begin(uint64_t seed) {
    for (uint64_t use = 0; use < STREAMS; use++) {
        streams[use].a = seed * 0x9E3779B97F4A7C15ull + 1;
        streams[use].b = (seed ^ 0xD1B54A32D192ED03ull) + use * 0xA24BAED4963EE407ull;
        for (int i = 0; i < 16; i++) /* seeds that differ in one bit begin alike */
            (void)draw(&streams[use]);
    }
    delays = 0;
}

/* The draws were made, whether or not the delay is. */
static uint64_t forced(uint64_t ns) {
    if (ns == 0 || delays >= config.delays_most)
        return 0;
    delays++;
    return ns;
}

uint64_t draw_latency(void) {
    uint64_t ns = draw_cost(&streams[NOISE], config.costs.wake_ns);

    if (config.costs.wake_spread_ns != 0) {
        const uint64_t moved = ns + draw_below(&streams[NOISE], 2ull * config.costs.wake_spread_ns + 1);

        ns = moved > config.costs.wake_spread_ns ? moved - config.costs.wake_spread_ns : 0;
    }
    if (config.noise >= VT_DELAYS) {
        const uint64_t dice = draw_below(&streams[DELAYS], WAKES);

        if (dice < LATE)
            ns += forced(1 + draw_below(&streams[DELAYS], LATE_NS));
        else if (dice == WAKES - 1)
            ns += forced(1 + draw_below(&streams[DELAYS], LONG_NS));
    }
    return ns;
}

uint64_t draw_preemption(void) {
    struct stream *stream = &streams[DELAYS];

    return forced(1 + draw_below(stream, draw_below(stream, 4) != 0 ? PREEMPTED_NS : LONG_NS));
}

void draw_bytes(void *bytes, size_t size) {
    for (size_t done = 0; done < size;) {
        const uint64_t word = draw(&streams[PROGRAMS]);
        const size_t part = size - done < sizeof(word) ? size - done : sizeof(word);

        memcpy((char *)bytes + done, &word, part);
        done += part;
    }
}

/* What is secret in a real process is drawn from the seed here. */
ssize_t getrandom(void *bytes, size_t size, unsigned flags) {
    if (!SIMULATED())
        return answer(raw(SYS_getrandom, (long)bytes, (long)size, flags, 0, 0, 0));
    draw_bytes(bytes, size);
    return (ssize_t)size;
}

int getentropy(void *bytes, size_t size) { return getrandom(bytes, size, 0) == (ssize_t)size ? 0 : -1; }

uint64_t vt_random(uint64_t limit) { return draw_below(&streams[PROGRAMS], limit); }

uint64_t vt_delays(void) { return delays; }
