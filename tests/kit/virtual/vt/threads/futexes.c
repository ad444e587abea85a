/* Futexes: a wait looks at the word and blocks in the same step, so that no wake falls between. */
#include <linux/futex.h>

#include "machine.h"

static uint64_t wakes, lost;

/* A lost wake says what it would have said. */
static int wake_waiters(struct key key, uint32_t bits, int most) {
    int woken = 0;

    if (most > 0 && awaited(key, bits) && !self->ghost) {
        wakes++;
        woken = wakes == lost ? 1 : wake(key, bits, most);
    }
    point(P_FUTEX_WAKE, 0);
    return woken;
}

static long wait_while(uint32_t *word, uint32_t value, struct key key, uint32_t bits, uint64_t deadline) {
    int error;

    if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value || self->ghost)
        return fail(EAGAIN);
    error = block(key, bits, deadline);
    return error == 0 ? 0 : fail(error);
}

long futex(uint32_t *word, int operation, uint32_t value, const struct timespec *timeout, uint32_t bits) {
    const struct key key = key_of(word, (operation & FUTEX_PRIVATE_FLAG) != 0, K_FUTEX);

    switch (operation & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
        point(P_FUTEX_WAIT, config.costs.futex_ns);
        return wait_while(word, value, key, FUTEX_BITSET_MATCH_ANY, timeout == NULL ? NEVER : after(nanoseconds(timeout)));
    case FUTEX_WAIT_BITSET:
        point(P_FUTEX_WAIT, config.costs.futex_ns);
        return wait_while(word, value, key, bits, timeout == NULL ? NEVER : nanoseconds(timeout));
    case FUTEX_WAKE: point(P_FUTEX_WAKE, config.costs.futex_ns); return wake_waiters(key, FUTEX_BITSET_MATCH_ANY, (int)value);
    case FUTEX_WAKE_BITSET: point(P_FUTEX_WAKE, config.costs.futex_ns); return wake_waiters(key, bits, (int)value);
    default: die(VT_IMPOSSIBLE, "a futex operation that is not simulated");
    }
}

void vt_lose_wake(uint64_t number) { lost = number; }

uint64_t vt_wakes(void) { return wakes; }
