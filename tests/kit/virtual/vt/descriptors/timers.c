/* What happens at a time by itself: timerfd's descriptors become readable, stopped processes go on. */
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#include "machine.h"

enum { TIMERS = 1024 };

/* A timerfd is an eventfd that is written at its deadline; fd -1 continues a process. */
struct timer {
    int fd, process;
    uint64_t deadline, interval;
    bool expired; /* since it was set; it may have been read since, too */
};

static struct timer timers[TIMERS];
static int timer_count;
static uint64_t first = NEVER;

static void find_first(void) {
    first = NEVER;
    for (int i = 0; i < timer_count; i++)
        if (timers[i].deadline < first)
            first = timers[i].deadline;
}

static struct timer *timer_of(int fd) {
    for (int i = 0; i < timer_count; i++)
        if (timers[i].fd == fd)
            return &timers[i];
    return NULL;
}

static void add(struct timer timer) {
    if (timer_count == TIMERS)
        die(VT_IMPOSSIBLE, "more timers than there is room for");
    timers[timer_count++] = timer;
    find_first();
}

static void drop(struct timer *timer) {
    *timer = timers[--timer_count];
    find_first();
}

uint64_t timers_first(void) { return first; }

void timers_expire(uint64_t at) {
    for (int i = 0; i < timer_count; i++) {
        struct timer *timer = &timers[i];
        const uint64_t one = 1;

        if (timer->deadline != at)
            continue;
        if (timer->fd < 0) {
            const int process = timer->process;

            drop(timer);
            process_continues(process, at);
            return;
        }
        (void)raw(SYS_write, timer->fd, (long)&one, sizeof(one), 0, 0, 0);
        timer->expired = true;
        timer->deadline = timer->interval != 0 ? at + timer->interval : NEVER;
        find_first();
        return;
    }
}

void timers_continue(int process, uint64_t at) {
    add((struct timer){.fd = -1, .process = process, .deadline = at});
    before_horizon(at);
}

void timer_closed(int fd) {
    struct timer *timer = timer_count != 0 ? timer_of(fd) : NULL;

    if (timer != NULL)
        drop(timer);
}

int timerfd_create(int clock, int flags) {
    int fd;

    if (!SIMULATED())
        return (int)answer(raw(SYS_timerfd_create, clock, flags, 0, 0, 0, 0));
    /* TFD_CLOEXEC is O_CLOEXEC, as an eventfd's is. A read never waits: nobody could end that. */
    fd = (int)answer(own(raw(SYS_eventfd2, 0, flags | EFD_NONBLOCK, 0, 0, 0, 0)));
    if (fd >= 0)
        add((struct timer){.fd = fd, .process = self->process, .deadline = NEVER});
    return fd;
}

static void tell(const struct timer *timer, struct itimerspec *left) {
    const uint64_t ns = timer->deadline == NEVER ? 0 : timer->deadline > self->t ? timer->deadline - self->t : 1;

    left->it_value = (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    left->it_interval = (struct timespec){(time_t)(timer->interval / 1000000000u), (long)(timer->interval % 1000000000u)};
}

int timerfd_settime(int fd, int flags, const struct itimerspec *wanted, struct itimerspec *before) {
    struct timer *timer;
    uint64_t value, count;

    if (!SIMULATED())
        return (int)answer(raw(SYS_timerfd_settime, fd, flags, (long)wanted, (long)before, 0, 0));
    point(P_IO, config.costs.io_ns);
    if (self->ghost)
        return fail(EBADF);
    timer = timer_of(fd);
    if (timer == NULL)
        return fail(EINVAL);
    if (before != NULL)
        tell(timer, before);
    if (timer->expired) /* that is forgotten */
        (void)raw(SYS_read, fd, (long)&count, sizeof(count), 0, 0, 0);
    timer->expired = false;
    value = nanoseconds(&wanted->it_value);
    timer->deadline = value == 0 ? NEVER : (flags & TFD_TIMER_ABSTIME) != 0 ? value : after(value);
    timer->interval = nanoseconds(&wanted->it_interval);
    find_first();
    before_horizon(first);
    return 0;
}

int timerfd_gettime(int fd, struct itimerspec *left) {
    struct timer *timer;

    if (!SIMULATED())
        return (int)answer(raw(SYS_timerfd_gettime, fd, (long)left, 0, 0, 0, 0));
    timer = timer_of(fd);
    if (timer == NULL)
        return fail(EINVAL);
    tell(timer, left);
    return 0;
}
