#ifndef EDGESHARE_CORE_LOCK_H
#define EDGESHARE_CORE_LOCK_H

#include <stdbool.h>
#include <stdint.h>

/* A mutex of one word that needs no libpthread and can be made anew in a forked child by setting it to zero.
 * Held for a few dozen instructions at most, and never across a call of the driver. All of these keep errno. */
struct es_lock {
    uint32_t state; /* 0 free, 1 held, 2 held and somebody waits */
};

void es_lock_take(struct es_lock *lock);
bool es_lock_try(struct es_lock *lock); /* false where somebody holds it; never waits */
void es_lock_give(struct es_lock *lock);

/* How many of them the calling thread holds, or is about to. A signal handler that finds one held by the very thread that
 * it interrupted must not take any. */
extern __thread uint32_t es_locks_held __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* The same for what is held like a lock but never waited for: a flag that says "I am at it". The count is for handlers in
 * the same thread, so that the order of writes need only be kept from the compiler. */
static inline void es_locks_hold(void)
{
    es_locks_held++;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void es_locks_drop(void)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    es_locks_held--;
}

/* A private futex: sleeps while *word is `seen`, at most timeout_ns; and wakes all who do. */
void es_sleep_on(const uint32_t *word, uint32_t seen, uint64_t timeout_ns);
void es_wake_all(const uint32_t *word);

#endif
