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
enum { FREE, TAKEN, AWAITED }; /* what a word of `taken` says */

static struct es_primary primaries[DEVICES]; /* each is under its word of `taken` */
static uint32_t taken[DEVICES];              /* futexes */

/* The thread has taken one, or is about to: a handler that interrupted it must not wait for it. */
static __thread bool at_it __attribute__((tls_model("initial-exec")));

static void wait_for(uint32_t *word) {
    const uint64_t give_up_ns = es_now_ns() + PATIENCE_MS * ES_MS;

    while (__atomic_exchange_n(word, AWAITED, __ATOMIC_ACQUIRE) != FREE && es_now_ns() < give_up_ns)
        es_sleep_on(word, AWAITED, LOOK_MS * ES_MS);
}

struct es_primary *es_primary_take(CUdevice device) {
    uint32_t is_free = FREE;

    if (device < 0 || device >= DEVICES || at_it || es_life_apart())
        return NULL;
    at_it = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (!__atomic_compare_exchange_n(&taken[device], &is_free, TAKEN, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        wait_for(&taken[device]);
    return &primaries[device];
}

void es_primary_give(struct es_primary *primary) {
    uint32_t *word;

    if (primary == NULL)
        return;
    word = &taken[primary - primaries];
    if (__atomic_exchange_n(word, FREE, __ATOMIC_RELEASE) == AWAITED)
        es_wake_all(word);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    at_it = false;
}

void es_primaries_reset(void) {
    memset(primaries, 0, sizeof(primaries));
    memset(taken, 0, sizeof(taken));
    at_it = false;
}
