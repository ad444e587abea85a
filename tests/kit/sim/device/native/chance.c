#include "state.h"

/* xorshift64, in [0, 1). */
static double chance(void) {
    s.random ^= s.random << 13;
    s.random ^= s.random >> 7;
    s.random ^= s.random << 17;
    return (double)(s.random >> 11) / 9007199254740992.0;
}

int64_t between(int64_t least_ns, int64_t most_ns) { return least_ns + (int64_t)(chance() * (double)(most_ns - least_ns)); }

int64_t message_ns(void) { return between(5 * US, 10 * US); }

int64_t wake_ns(void) { return between(9 * US, 12 * US) + (chance() < 0.005 ? between(0, 200 * US) : 0); }

int64_t spread_ns(int64_t ns, double part) { return (int64_t)((double)ns * (1 + part * (2 * chance() - 1))); }
