#include "driver/primaries.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/life.h"
#include "core/tools/clock.h"
#include "core/tools/lock.h"

enum {
    DEVICES = 64,
    PATIENCE_MS = 10 * 1000, /* to make or to end a context takes a driver some seconds at most */
    LOOK_MS = 100,
};
enum { FREE, TAKEN, AWAITED }; /* of a turn */

static struct es_primary primaries[DEVICES]; /* each under its turn */
static uint32_t turns[DEVICES];              /* futexes */

/* The thread has a turn, or is about to: a handler that interrupted it must not wait for it. */
static __thread bool at_it __attribute__((tls_model("initial-exec")));

static void wait_for(uint32_t *turn) {
    const uint64_t give_up_ns = es_now_ns() + PATIENCE_MS * ES_MS;

    while (__atomic_exchange_n(turn, AWAITED, __ATOMIC_ACQUIRE) != FREE && es_now_ns() < give_up_ns)
        es_sleep_on(turn, AWAITED, LOOK_MS * ES_MS);
}

struct es_primary *es_primary_take(CUdevice device) {
    uint32_t is_free = FREE;

    if (device < 0 || device >= DEVICES || at_it || es_life_apart())
        return NULL;
    at_it = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (!__atomic_compare_exchange_n(&turns[device], &is_free, TAKEN, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        wait_for(&turns[device]);
    return &primaries[device];
}

void es_primary_give(struct es_primary *primary) {
    uint32_t *turn;

    if (primary == NULL)
        return;
    turn = &turns[primary - primaries];
    if (__atomic_exchange_n(turn, FREE, __ATOMIC_RELEASE) == AWAITED)
        es_wake_all(turn);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    at_it = false;
}

void es_primaries_reset(void) {
    memset(primaries, 0, sizeof(primaries));
    memset(turns, 0, sizeof(turns));
    at_it = false;
}
