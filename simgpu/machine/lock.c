#include "machine/lock.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef F_OFD_GETLK /* since glibc 2.20; Linux 3.15 */
#define F_OFD_GETLK 36
#endif

#define WAITERS 0x80000000u
/* What is guarded takes well under a microsecond, so a short spin nearly always does. */
#define SPINS 200
/* How long a waiter sleeps before it asks whether the holder lives. */
#define PATIENCE_NS 1000000

bool record_lock(int fd, uint32_t offset) {
    struct flock record = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = offset, .l_len = 1};
    return fcntl(fd, F_SETLK, &record) == 0;
}

bool record_held(int fd, uint32_t offset, int32_t *pid) {
    /* The query of an open file description also sees the records of this very process, F_GETLK would not. */
    struct flock record = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = offset, .l_len = 1};
    bool held = fcntl(fd, F_OFD_GETLK, &record) == 0 && record.l_type != F_UNLCK;
    if (pid)
        *pid = held && record.l_pid > 0 ? record.l_pid : 0;
    return held;
}

/* This process's number in lock words, claimed at its first lock. Threads that race claim the same one: a process never
 * conflicts with its own record locks. */
static uint32_t holder_of(struct machine *machine) {
    uint32_t holder = load_u32(&machine->holder);
    uint32_t first = holder ? 0 : (uint32_t)getpid();
    for (uint32_t step = 0; !holder && step < SIMGPU_HOLDERS; step++) {
        uint32_t number = (first + step) % SIMGPU_HOLDERS;
        if (record_lock(machine->lock_fd, SIMGPU_PROCESSES + number))
            holder = number + 1;
    }
    /* With every number taken (4,096 processes) the last one is shared: a death under it is seen too late, no more. */
    if (!holder)
        holder = SIMGPU_HOLDERS;
    store_u32(&machine->holder, holder);
    return holder;
}

void futex_wait_for(uint32_t *word, uint32_t value, uint64_t timeout_ns) {
    struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / 1000000000u), .tv_nsec = (long)(timeout_ns % 1000000000u)};
    syscall(SYS_futex, word, FUTEX_WAIT, value, &timeout, NULL, 0);
}

void futex_wake_all(uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE, 0x7fffffff, NULL, NULL, 0); }

bool word_lock(struct machine *machine, uint32_t *word) {
    uint32_t own = holder_of(machine);
    for (int spin = 0; spin < SPINS; spin++) {
        uint32_t free_word = 0;
        if (__atomic_compare_exchange_n(word, &free_word, own, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return false;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    for (;;) {
        uint32_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);
        if (seen == 0) {
            /* Others may sleep: keep the mark, so that the unlock wakes one. */
            if (__atomic_compare_exchange_n(word, &seen, own | WAITERS, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
                return false;
            continue;
        }
        if (!(seen & WAITERS)) {
            if (!__atomic_compare_exchange_n(word, &seen, seen | WAITERS, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
                continue;
            seen |= WAITERS;
        }
        futex_wait_for(word, seen, PATIENCE_NS);
        if (__atomic_load_n(word, __ATOMIC_RELAXED) != seen)
            continue;
        uint32_t holder = seen & ~WAITERS;
        if (!record_held(machine->lock_fd, SIMGPU_PROCESSES + holder - 1, NULL) &&
            __atomic_compare_exchange_n(word, &seen, own | WAITERS, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return true;
    }
}

void word_unlock(uint32_t *word) {
    if (__atomic_exchange_n(word, 0, __ATOMIC_RELEASE) & WAITERS)
        syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}
