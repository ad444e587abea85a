#ifndef EDGESHARE_CORE_LOCK_H
#define EDGESHARE_CORE_LOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Who needs which lock is declared at the function or the datum, and checked by clang's thread-safety analysis (make lint;
 * "Thread Safety Analysis" in clang's documentation). To other compilers these say nothing. */
#if defined(__clang__)
#define ES_LOCK_CAPABILITY __attribute__((capability("mutex")))
#define ES_UNDER(lock) __attribute__((guarded_by(lock)))
#define ES_LOCKED(lock) __attribute__((requires_capability(lock)))
#define ES_TAKES(lock) __attribute__((acquire_capability(lock)))
#define ES_TRIES(lock) __attribute__((try_acquire_capability(true, lock)))
#define ES_GIVES(lock) __attribute__((release_capability(lock)))
#define ES_UNCHECKED __attribute__((no_thread_safety_analysis))
#else
#define ES_LOCK_CAPABILITY
#define ES_UNDER(lock)  /* is read and written with it held */
#define ES_LOCKED(lock) /* is called with it held */
#define ES_TAKES(lock)
#define ES_TRIES(lock) /* true: it was taken */
#define ES_GIVES(lock)
#define ES_UNCHECKED /* another reason than a lock keeps others away: in a forked child nobody else is there */
#endif

/* A mutex of one word that needs no libpthread and can be made anew in a forked child by setting it to zero.
 * Held for a few dozen instructions at most, and never across a call of the driver. All of these keep errno. */
struct ES_LOCK_CAPABILITY es_lock {
    uint32_t state; /* 0 free, 1 held, 2 held and somebody waits */
};

void es_lock_take(struct es_lock *lock) ES_TAKES(lock);
bool es_lock_try(struct es_lock *lock) ES_TRIES(lock); /* false where somebody holds it; never waits */
void es_lock_give(struct es_lock *lock) ES_GIVES(lock);

/* How many of them the calling thread holds, or is about to. A signal handler that finds one held by the very thread that
 * it interrupted must not take any. */
extern __thread uint32_t es_locks_held __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Count what is held like a lock but never waited for: a flag that says "I am at it". The count is for handlers in the same
 * thread, so that the order of writes need only be kept from the compiler. */
static inline void es_locks_hold(void) {
    es_locks_held++;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void es_locks_drop(void) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    es_locks_held--;
}

/* A private futex: sleeps while *word is `seen`, at most timeout_ns; and wakes all who do. */
void es_sleep_on(const uint32_t *word, uint32_t seen, uint64_t timeout_ns);
void es_wake_all(const uint32_t *word);

#endif
