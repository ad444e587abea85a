/* Every clock is the simulated one. Those of processor time, too: what they really say differs from run to run. */
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "machine.h"

/* What looks from elsewhere than before does something else. */
static void looks_from(const void *from) {
    if (self->looked_from != from)
        self->spins = 0;
    self->looked_from = from;
}

int tell_time(struct timespec *time, const void *from) {
    looks_from(from);
    point(P_CLOCK, look_cost(&self->spins));
    *time = (struct timespec){(time_t)(self->t / 1000000000u), (long)(self->t % 1000000000u)};
    return 0;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    if (!SIMULATED())
        return (int)answer(raw(SYS_clock_gettime, clock, (long)time, 0, 0, 0, 0));
    return tell_time(time, __builtin_return_address(0));
}

void clock_pass_until(uint64_t time_ns) {
    if (!SIMULATED()) {
        while (vt_real_ns() < time_ns) {}
        return;
    }
    looks_from(__builtin_return_address(0));
    look_until(time_ns);
}

int gettimeofday(struct timeval *time, void *zone) {
    struct timespec now;

    if (!SIMULATED())
        return (int)answer(raw(SYS_gettimeofday, (long)time, (long)zone, 0, 0, 0, 0));
    (void)tell_time(&now, __builtin_return_address(0));
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *seconds) {
    struct timespec now;

    if (!SIMULATED())
        return raw(SYS_time, (long)seconds, 0, 0, 0, 0, 0);
    (void)tell_time(&now, __builtin_return_address(0));
    if (seconds != NULL)
        *seconds = now.tv_sec;
    return now.tv_sec;
}

int sleep_until(uint64_t deadline) {
    if (self->ghost)
        return 0;
    point(P_SLEEP, config.costs.futex_ns);
    if (deadline > self->t)
        (void)block((struct key){0, K_NOTHING}, 0, deadline);
    return 0;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left) {
    if (!SIMULATED())
        return (int)-raw(SYS_clock_nanosleep, clock, flags, (long)time, (long)left, 0, 0);
    return sleep_until((flags & TIMER_ABSTIME) != 0 ? nanoseconds(time) : after(nanoseconds(time)));
}

int nanosleep(const struct timespec *time, struct timespec *left) {
    if (!SIMULATED())
        return (int)answer(raw(SYS_nanosleep, (long)time, (long)left, 0, 0, 0, 0));
    return sleep_until(after(nanoseconds(time)));
}

int usleep(useconds_t us) {
    const struct timespec time = {us / 1000000, (long)(us % 1000000) * 1000};

    if (!SIMULATED())
        return (int)answer(raw(SYS_nanosleep, (long)&time, 0, 0, 0, 0, 0));
    return sleep_until(after(nanoseconds(&time)));
}

unsigned sleep(unsigned seconds) {
    const struct timespec time = {seconds, 0};

    if (!SIMULATED())
        return raw(SYS_nanosleep, (long)&time, 0, 0, 0, 0, 0) == 0 ? 0 : seconds;
    return (unsigned)sleep_until(after(nanoseconds(&time)));
}

/* Without the kernel, which a simulated wait never reaches: how late each ends is drawn, whatever slack it is given. */
int prctl(int option, ...) {
    unsigned long given[4];
    va_list arguments;

    va_start(arguments, option);
    for (int i = 0; i < 4; i++)
        given[i] = va_arg(arguments, unsigned long);
    va_end(arguments);
    if (SIMULATED() && (option == PR_SET_TIMERSLACK || option == PR_GET_TIMERSLACK))
        return 0;
    return (int)answer(raw(SYS_prctl, option, (long)given[0], (long)given[1], (long)given[2], (long)given[3], 0));
}

int sched_yield(void) {
    if (!SIMULATED())
        return (int)answer(raw(SYS_sched_yield, 0, 0, 0, 0, 0, 0));
    point(P_SLEEP, config.costs.futex_ns);
    return 0;
}

void vt_sleep(uint64_t ns) {
    if (!SIMULATED() || self->ghost)
        return;
    point(P_SLEEP, 0);
    (void)block((struct key){0, K_NOTHING}, 0, after(ns));
}

void vt_spend(uint64_t ns) {
    if (SIMULATED())
        point(P_SPEND, ns);
}

uint64_t vt_now(void) { return self == NULL ? START_NS : self->t; }

uint64_t vt_real_ns(void) {
    struct timespec time;

    (void)raw(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&time, 0, 0, 0, 0);
    return nanoseconds(&time);
}
