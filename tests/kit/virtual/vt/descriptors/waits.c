/* Waiting for descriptors: poll, ppoll, epoll. */
#include <sys/epoll.h>
#include <sys/syscall.h>

#include "machine.h"

bool room_awaited;

static uint64_t until(int timeout_ms) { return timeout_ms < 0 ? NEVER : after((uint64_t)timeout_ms * 1000000u); }

/* How many are ready, 0 at the deadline, as the kernel's poll. */
long wait_ready(struct pollfd *fds, int count, uint64_t deadline) {
    for (;;) {
        const long ready = raw(SYS_poll, (long)fds, count, 0, 0, 0, 0);

        if (ready != 0 || self->t >= deadline)
            return ready;
        for (int i = 0; i < count; i++)
            room_awaited |= (fds[i].events & POLLOUT) != 0;
        self->fds = fds;
        self->fd_count = count;
        (void)block((struct key){0, K_NOTHING}, 0, deadline);
        self->fds = NULL;
        if (self->ghost)
            return -EBADF;
    }
}

long poll_until(struct pollfd *fds, int count, uint64_t deadline) {
    point(P_POLL, config.costs.io_ns);
    if (self->ghost)
        return -EBADF;
    return wait_ready(fds, count, deadline);
}

int poll(struct pollfd *fds, nfds_t count, int timeout_ms) {
    if (!SIMULATED())
        return (int)answer(raw(SYS_poll, (long)fds, (long)count, timeout_ms, 0, 0, 0));
    return (int)answer(poll_until(fds, (int)count, until(timeout_ms)));
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask) {
    struct timespec left;

    if (!SIMULATED()) {
        if (timeout != NULL)
            left = *timeout; /* the kernel writes to it, the C library's does not */
        return (int)answer(
            raw(SYS_ppoll, (long)fds, (long)count, timeout == NULL ? 0 : (long)&left, (long)mask, sizeof(long), 0));
    }
    return (int)answer(poll_until(fds, (int)count, timeout == NULL ? NEVER : after(nanoseconds(timeout))));
}

int epoll_create1(int flags) { return (int)answer(own(raw(SYS_epoll_create1, flags, 0, 0, 0, 0, 0))); }

int epoll_create(int size) { return size <= 0 ? fail(EINVAL) : epoll_create1(0); }

int epoll_ctl(int fd, int operation, int of, struct epoll_event *event) {
    if (SIMULATED() && self->ghost)
        return fail(EBADF);
    room_awaited |= operation != EPOLL_CTL_DEL && (event->events & EPOLLOUT) != 0;
    return (int)answer(raw(SYS_epoll_ctl, fd, operation, of, (long)event, 0, 0));
}

int epoll_wait(int fd, struct epoll_event *events, int most, int timeout_ms) {
    struct pollfd waited = {.fd = fd, .events = POLLIN};
    uint64_t deadline;

    if (!SIMULATED())
        return (int)answer(raw(SYS_epoll_wait, fd, (long)events, most, timeout_ms, 0, 0));
    point(P_POLL, config.costs.io_ns);
    deadline = until(timeout_ms);
    for (;;) {
        long ready = self->ghost ? -EBADF : raw(SYS_epoll_wait, fd, (long)events, most, 0, 0, 0);

        if (ready > 0)
            point(P_POLL, config.costs.step_ns);
        if (ready != 0 || self->t >= deadline)
            return (int)answer(ready);
        ready = wait_ready(&waited, 1, deadline);
        if (ready < 0)
            return (int)answer(ready);
    }
}

int epoll_pwait(int fd, struct epoll_event *events, int most, int timeout_ms, const sigset_t *mask) {
    if (!SIMULATED())
        return (int)answer(raw(SYS_epoll_pwait, fd, (long)events, most, timeout_ms, (long)mask, sizeof(long)));
    return epoll_wait(fd, events, most, timeout_ms);
}
