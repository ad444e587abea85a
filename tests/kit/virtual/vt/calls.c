/* syscall(): for programs that go round the C library's functions. What is not simulated reaches the kernel. */
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "machine.h"

static uint64_t barriers;

static long membarrier(void) {
    barriers++;
    point(P_BARRIER, config.costs.barrier_ns);
    return 0;
}

static long call_of_time(long number, const long *a, bool *done) {
    switch (number) {
    case SYS_clock_gettime: return tell_time((struct timespec *)a[1], NULL);
    case SYS_nanosleep: return sleep_until(after(nanoseconds((const struct timespec *)a[0])));
    case SYS_clock_nanosleep:
        return sleep_until((a[1] & TIMER_ABSTIME) != 0 ? nanoseconds((const struct timespec *)a[2])
                                                       : after(nanoseconds((const struct timespec *)a[2])));
    case SYS_sched_yield: point(P_SLEEP, config.costs.futex_ns); return 0;
    case SYS_membarrier: return membarrier();
    default: *done = false; return 0;
    }
}

static long call_of_process(long number, const long *a, bool *done) {
    struct thread *thread;

    switch (number) {
    case SYS_getpid: return getpid();
    case SYS_gettid: return self->tid;
    case SYS_kill: return send_signal(a[0], (int)a[1]);
    case SYS_tgkill: /* only to ask whether it is there: simulated threads have no handlers */
        thread = thread_by_tid(a[1]);
        return thread == NULL || thread->process != process_by_pid(a[0]) ? -ESRCH : 0;
    case SYS_pidfd_open: return pidfd(a[0]);
    case SYS_getrandom: draw_bytes((void *)a[0], (size_t)a[1]); return a[1];
    default: *done = false; return 0;
    }
}

static long call_of_file(long number, const long *a, bool *done) {
    switch (number) {
    case SYS_openat: return file_open((int)a[0], (const char *)a[1], (int)a[2], a[3]);
    case SYS_open: return file_open(AT_FDCWD, (const char *)a[0], (int)a[1], a[2]);
    case SYS_close: return close_own((int)a[0]);
    case SYS_read: return file_read((int)a[0], (void *)a[1], (size_t)a[2]);
    case SYS_write: return file_write((int)a[0], (const void *)a[1], (size_t)a[2]);
    case SYS_fcntl: return control((int)a[0], (int)a[1], (void *)a[2]);
    case SYS_memfd_create:
    case SYS_eventfd2:
    case SYS_epoll_create1:
    case SYS_dup:
    case SYS_dup2:
    case SYS_dup3: return own(raw(number, a[0], a[1], a[2], a[3], a[4], a[5]));
    default: *done = false; return 0;
    }
}

static long call_of_socket(long number, const long *a, bool *done) {
    switch (number) {
    case SYS_socket: return own(raw(number, a[0], a[1], a[2], 0, 0, 0));
    case SYS_connect: return connect_as((int)a[0], (const void *)a[1], (unsigned)a[2]);
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_recvfrom:
    case SYS_recvmsg: return transfer(number, (int)a[0], a + 1);
    case SYS_poll: return poll_until((struct pollfd *)a[0], (int)a[1], (int)a[2] < 0 ? NEVER : after((uint64_t)a[2] * 1000000u));
    case SYS_ppoll:
        return poll_until((struct pollfd *)a[0], (int)a[1],
                          a[2] == 0 ? NEVER : after(nanoseconds((const struct timespec *)a[2])));
    default: *done = false; return 0;
    }
}

/* Each answers as the kernel does, or says that it is not done. */
static long (*const families[])(long, const long *, bool *) = {call_of_time, call_of_process, call_of_file, call_of_socket};

long syscall(long number, ...) {
    va_list list;
    long a[6];

    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (!SIMULATED())
        return answer(raw(number, a[0], a[1], a[2], a[3], a[4], a[5]));
    if (number == SYS_futex)
        return futex((uint32_t *)a[0], (int)a[1], (uint32_t)a[2], (const struct timespec *)a[3], (uint32_t)a[5]);
    if (number == SYS_mmap)
        return (long)map((void *)a[0], (size_t)a[1], (int)a[2], (int)a[3], (int)a[4], a[5]);
    if (number == SYS_munmap)
        return munmap((void *)a[0], (size_t)a[1]);
    for (unsigned i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        bool done = true;
        const long result = families[i](number, a, &done);

        if (done)
            return answer(result);
    }
    return answer(raw(number, a[0], a[1], a[2], a[3], a[4], a[5]));
}

uint64_t vt_barriers(void) { return barriers; }
