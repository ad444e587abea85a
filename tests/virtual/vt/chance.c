/* All that is left to chance, from the seed. */
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>

#include "machine.h"

/* One stream for each use. Forced delays have their own, so that limiting them changes no other cost; programs have
 * theirs, so that what they draw does not depend on the noise. */
enum stream { NOISE, DELAYS, PROGRAMS, STREAMS };

enum {
    PREEMPTED_ONE_IN = 20000,
    PREEMPTED_NS = 50000,
    WAKES = 2000, /* of so many wakes ... */
    LATE = 40,    /* ... so many are a little late, and one very late */
    LATE_NS = 60000,
    LONG_NS = 3000000,
};

static uint64_t streams[STREAMS][2];
static uint64_t delays;

static uint64_t next(enum stream stream) {
    uint64_t *state = streams[stream];
    uint64_t a = state[0];
    const uint64_t b = state[1];

    state[0] = b;
    a ^= a << 23;
    state[1] = a ^ b ^ (a >> 18) ^ (b >> 5);
    return state[1] + b;
}

static uint64_t below(enum stream stream, uint64_t limit) { return (uint64_t)(((unsigned __int128)next(stream) * limit) >> 64); }

void chance_begin(uint64_t seed) {
    for (int stream = 0; stream < STREAMS; stream++) {
        streams[stream][0] = seed * 0x9E3779B97F4A7C15ull + 1;
        streams[stream][1] = (seed ^ 0xD1B54A32D192ED03ull) + (uint64_t)stream * 0xA24BAED4963EE407ull;
        for (int i = 0; i < 16; i++) /* seeds that differ in one bit begin alike */
            (void)next((enum stream)stream);
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

uint64_t draw_tie(uint32_t of) { return below(NOISE, of); }

uint64_t draw_cost(uint64_t mean) { return config.noise == VT_EXACT || mean < 2 ? mean : mean / 2 + below(NOISE, mean + 1); }

uint64_t draw_latency(void) {
    uint64_t ns = draw_cost(config.costs.wake_ns);

    if (config.costs.wake_spread_ns != 0) {
        const uint64_t moved = ns + below(NOISE, 2ull * config.costs.wake_spread_ns + 1);

        ns = moved > config.costs.wake_spread_ns ? moved - config.costs.wake_spread_ns : 0;
    }
    if (config.noise >= VT_DELAYS) {
        const uint64_t dice = below(DELAYS, WAKES);

        if (dice < LATE)
            ns += forced(1 + below(DELAYS, LATE_NS));
        else if (dice == WAKES - 1)
            ns += forced(1 + below(DELAYS, LONG_NS));
    }
    return ns;
}

uint64_t draw_preemption(void) {
    if (config.noise < VT_DELAYS || below(DELAYS, PREEMPTED_ONE_IN) != 0)
        return 0;
    return forced(1 + below(DELAYS, below(DELAYS, 4) != 0 ? PREEMPTED_NS : LONG_NS));
}

void draw_bytes(void *bytes, size_t size) {
    for (size_t done = 0; done < size;) {
        const uint64_t word = next(PROGRAMS);
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

uint64_t vt_random(uint64_t limit) { return below(PROGRAMS, limit); }

uint64_t vt_delays(void) { return delays; }
