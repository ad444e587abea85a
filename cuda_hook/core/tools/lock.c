#include "core/tools/lock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

__thread uint32_t es_locks_held __attribute__((tls_model("initial-exec"), visibility("hidden")));

static void futex(const uint32_t *word, int operation, uint32_t value, const struct timespec *timeout) {
    const int error = errno;

    (void)syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, timeout, NULL, 0);
    errno = error;
}

/* Nobody holds a lock for so long, but one who is put aside. Who waits that long looks again: the word does not say that
 * somebody waits once it was given, so one wake that is lost would be the only one. */
static const struct timespec again = {.tv_nsec = 1000 * 1000};

ES_UNCHECKED void es_lock_take(struct es_lock *lock) {
    uint32_t state = 0;

    es_locks_hold();
    if (__atomic_compare_exchange_n(&lock->state, &state, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    while (__atomic_exchange_n(&lock->state, 2, __ATOMIC_ACQUIRE) != 0)
        futex(&lock->state, FUTEX_WAIT, 2, &again);
}

ES_UNCHECKED bool es_lock_try(struct es_lock *lock) {
    uint32_t state = 0;

    es_locks_hold();
    if (__atomic_compare_exchange_n(&lock->state, &state, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return true;
    es_locks_drop();
    return false;
}

ES_UNCHECKED void es_lock_give(struct es_lock *lock) {
    if (__atomic_exchange_n(&lock->state, 0, __ATOMIC_RELEASE) == 2)
        futex(&lock->state, FUTEX_WAKE, 1, NULL);
    es_locks_drop();
}

void es_sleep_on(const uint32_t *word, uint32_t seen, uint64_t timeout_ns) {
    const struct timespec timeout = {
        .tv_sec = (time_t)(timeout_ns / 1000000000),
        .tv_nsec = (long)(timeout_ns % 1000000000),
    };

    futex(word, FUTEX_WAIT, seen, &timeout);
}

void es_wake_all(const uint32_t *word) { futex(word, FUTEX_WAKE, INT_MAX, NULL); }
