/* Mutexes, condition variables, read-write locks, semaphores and pthread_once. Their state is the C library's own,
 * taken and given by its own functions that never wait; only the waiting is simulated. A ghost waits for nothing. */
#include <limits.h>
#include <semaphore.h>

#include "machine.h"

/* As the C library marks what several processes may use. */
#define SHARED_MUTEX 128

static struct key mutex_key(const pthread_mutex_t *mutex) {
    return key_of(mutex, (mutex->__data.__kind & SHARED_MUTEX) == 0, K_MUTEX);
}

static struct key condition_key(const pthread_cond_t *condition) {
    return key_of(condition, (condition->__data.__wrefs & 1) == 0, K_CONDITION);
}

static int mutex_take(pthread_mutex_t *mutex, uint64_t deadline) {
    int error;

    if (config.costs.mutex_ns != 0)
        point(P_MUTEX, config.costs.mutex_ns);
    while ((error = REAL(pthread_mutex_trylock)(mutex)) == EBUSY) {
        if (self->ghost)
            return 0;
        if (block(mutex_key(mutex), ~0u, deadline) == ETIMEDOUT)
            return ETIMEDOUT;
    }
    return error;
}

static int mutex_give(pthread_mutex_t *mutex) {
    const int error = REAL(pthread_mutex_unlock)(mutex);

    if (self != NULL)
        (void)wake(mutex_key(mutex), ~0u, 1);
    return error;
}

int pthread_mutex_lock(pthread_mutex_t *mutex) {
    return SIMULATED() ? mutex_take(mutex, NEVER) : REAL(pthread_mutex_lock)(mutex);
}

int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *deadline) {
    return SIMULATED() ? mutex_take(mutex, nanoseconds(deadline)) : REAL(pthread_mutex_timedlock)(mutex, deadline);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex) { return mutex_give(mutex); }

static int condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t deadline) {
    int error;

    if (self->ghost)
        return 0;
    (void)mutex_give(mutex);
    error = block(condition_key(condition), ~0u, deadline);
    (void)mutex_take(mutex, NEVER);
    return error == ETIMEDOUT ? ETIMEDOUT : 0;
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex) {
    return SIMULATED() ? condition_wait(condition, mutex, NEVER) : REAL(pthread_cond_wait)(condition, mutex);
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *deadline) {
    return SIMULATED() ? condition_wait(condition, mutex, nanoseconds(deadline))
                       : REAL(pthread_cond_timedwait)(condition, mutex, deadline);
}

int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *deadline) {
    return SIMULATED() ? condition_wait(condition, mutex, nanoseconds(deadline))
                       : REAL(pthread_cond_clockwait)(condition, mutex, clock, deadline);
}

int pthread_cond_signal(pthread_cond_t *condition) {
    if (!SIMULATED())
        return REAL(pthread_cond_signal)(condition);
    (void)wake(condition_key(condition), ~0u, 1);
    return 0;
}

int pthread_cond_broadcast(pthread_cond_t *condition) {
    if (!SIMULATED())
        return REAL(pthread_cond_broadcast)(condition);
    (void)wake(condition_key(condition), ~0u, INT_MAX);
    return 0;
}

static int read_write_take(pthread_rwlock_t *lock, int (*try)(pthread_rwlock_t *)) {
    int error;

    point(P_MUTEX, config.costs.mutex_ns);
    while ((error = try(lock)) == EBUSY && !self->ghost)
        (void)block(key_of(lock, false, K_MUTEX), ~0u, NEVER);
    return self->ghost ? 0 : error;
}

int pthread_rwlock_rdlock(pthread_rwlock_t *lock) {
    return SIMULATED() ? read_write_take(lock, REAL(pthread_rwlock_tryrdlock)) : REAL(pthread_rwlock_rdlock)(lock);
}

int pthread_rwlock_wrlock(pthread_rwlock_t *lock) {
    return SIMULATED() ? read_write_take(lock, REAL(pthread_rwlock_trywrlock)) : REAL(pthread_rwlock_wrlock)(lock);
}

int pthread_rwlock_unlock(pthread_rwlock_t *lock) {
    const int error = REAL(pthread_rwlock_unlock)(lock);

    if (SIMULATED())
        (void)wake(key_of(lock, false, K_MUTEX), ~0u, INT_MAX);
    return error;
}

static int semaphore_take(sem_t *semaphore, uint64_t deadline) {
    point(P_MUTEX, config.costs.mutex_ns);
    while (REAL(sem_trywait)(semaphore) != 0) {
        if (self->ghost)
            return 0;
        if (block(key_of(semaphore, false, K_SEMAPHORE), ~0u, deadline) == ETIMEDOUT)
            return fail(ETIMEDOUT);
    }
    return 0;
}

int sem_wait(sem_t *semaphore) { return SIMULATED() ? semaphore_take(semaphore, NEVER) : REAL(sem_wait)(semaphore); }

int sem_timedwait(sem_t *semaphore, const struct timespec *deadline) {
    return SIMULATED() ? semaphore_take(semaphore, nanoseconds(deadline)) : REAL(sem_timedwait)(semaphore, deadline);
}

int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *deadline) {
    return SIMULATED() ? semaphore_take(semaphore, nanoseconds(deadline)) : REAL(sem_clockwait)(semaphore, clock, deadline);
}

int sem_post(sem_t *semaphore) {
    const int result = REAL(sem_post)(semaphore);

    if (SIMULATED())
        (void)wake(key_of(semaphore, false, K_SEMAPHORE), ~0u, 1);
    return result;
}

/* The C library's own marks: 2 is done, 1 begun. */
int pthread_once(pthread_once_t *once, void (*run)(void)) {
    enum { BEGUN = 1, DONE = 2 };

    if (!SIMULATED())
        return REAL(pthread_once)(once, run);
    while (*once != DONE && *once == BEGUN && !self->ghost)
        (void)block((struct key){(uintptr_t)once, K_ONCE}, ~0u, NEVER);
    if (*once == DONE)
        return 0;
    *once = BEGUN;
    run();
    *once = DONE;
    (void)wake((struct key){(uintptr_t)once, K_ONCE}, ~0u, INT_MAX);
    return 0;
}

void vt_sem_post(struct vt_sem *sem) {
    if (!SIMULATED())
        return;
    point(P_MUTEX, config.costs.futex_ns);
    if (self->ghost)
        return;
    sem->count++;
    (void)wake((struct key){(uintptr_t)sem, K_SEMAPHORE}, ~0u, 1);
    point(P_MUTEX, 0);
}

void vt_sem_wait(struct vt_sem *sem) {
    if (!SIMULATED())
        return;
    point(P_MUTEX, config.costs.mutex_ns);
    while (sem->count == 0 && !self->ghost)
        (void)block((struct key){(uintptr_t)sem, K_SEMAPHORE}, ~0u, NEVER);
    if (!self->ghost)
        sem->count--;
}
