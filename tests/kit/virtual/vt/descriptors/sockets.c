/* Sockets are real. A call that would wait on one that may waits here; after each that may have given somebody
 * something, those who wait for descriptors are looked at. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "machine.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* A socket that connects first gets a name that says whose it is: the kernel knows the real process alone. */
#define NAME_FORM "vt/%d/%d/%d"

int socket(int domain, int type, int protocol) { return (int)answer(own(raw(SYS_socket, domain, type, protocol, 0, 0, 0))); }

int socketpair(int domain, int type, int protocol, int ends[2]) {
    const int result = (int)answer(raw(SYS_socketpair, domain, type, protocol, (long)ends, 0, 0));

    if (result == 0)
        (void)(own(ends[0]) + own(ends[1]));
    return result;
}

static void name_socket(int fd) {
    static int named;
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    const int length = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, NAME_FORM, (int)raw(SYS_getpid, 0, 0, 0, 0, 0, 0),
                                FIRST_PID + self->process, named++);

    /* It fails where the socket has a name: then that program's peer sees no pid. */
    (void)raw(SYS_bind, fd, (long)&name, (long)offsetof(struct sockaddr_un, sun_path) + 1 + length, 0, 0, 0);
}

/* 0: not known, as the kernel says of a process of another pid namespace. */
static int peer_pid(int fd) {
    struct sockaddr_un name = {.sun_family = AF_UNSPEC};
    socklen_t size = sizeof(name) - 1; /* a 0 stays at its end */
    int real, pid, number;

    if (raw(SYS_getpeername, fd, (long)&name, (long)&size, 0, 0, 0) != 0 || name.sun_family != AF_UNIX)
        return 0;
    if (size <= offsetof(struct sockaddr_un, sun_path))
        return owner_of(fd) < 0 ? 0 : FIRST_PID + owner_of(fd); /* one of a pair */
    if (name.sun_path[0] != 0 || sscanf(name.sun_path + 1, NAME_FORM, &real, &pid, &number) != 3)
        return 0;
    return pid;
}

int getsockopt(int fd, int level, int option, void *restrict value, socklen_t *restrict size) {
    long result;

    if (SIMULATED() && level == SOL_SOCKET && option == SO_PEERPIDFD)
        return fail(ENOPROTOOPT);
    result = raw(SYS_getsockopt, fd, level, option, (long)value, (long)size, 0);
    if (SIMULATED() && result == 0 && level == SOL_SOCKET && option == SO_PEERCRED)
        ((struct ucred *)value)->pid = peer_pid(fd);
    return (int)answer(result);
}

static bool waits_for(int fd, int flags) {
    return (flags & MSG_DONTWAIT) == 0 && (raw(SYS_fcntl, fd, F_GETFL, 0, 0, 0, 0) & O_NONBLOCK) == 0;
}

/* Descriptors that came with a message are the receiver's. */
static void own_received(const struct msghdr *message) {
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part != NULL; part = CMSG_NXTHDR((struct msghdr *)message, part)) {
        const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < count; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(fd));
            (void)own(fd);
        }
    }
}

static bool sends(long number) { return number == SYS_sendto || number == SYS_sendmsg; }

/* sendto, recvfrom, sendmsg, recvmsg, as the kernel's: arguments[] are those after the descriptor. */
long transfer(long number, int fd, const long arguments[5]) {
    const bool of_message = number == SYS_sendmsg || number == SYS_recvmsg;
    const int flags = (int)arguments[of_message ? 1 : 2];
    long given[5];
    long result;

    memcpy(given, arguments, sizeof(given));
    given[of_message ? 1 : 2] = flags | MSG_DONTWAIT | (sends(number) ? MSG_NOSIGNAL : 0);
    point(P_IO, config.costs.io_ns);
    if (self->ghost)
        return sends(number) ? -EPIPE : 0;
    while ((result = raw(number, fd, given[0], given[1], given[2], given[3], given[4])) == -EAGAIN && waits_for(fd, flags)) {
        struct pollfd ready = {.fd = fd, .events = sends(number) ? POLLOUT : POLLIN};

        if (wait_ready(&ready, 1, NEVER) < 0)
            return -EBADF;
    }
    if (number == SYS_recvmsg && result >= 0)
        own_received((const struct msghdr *)given[0]);
    if (sends(number) || room_awaited)
        descriptors_changed();
    point(P_IO, 0);
    return result;
}

#define TRANSFER(name, parameters, number, fd, a, b, c, d, e)                                                     \
    ssize_t name parameters {                                                                                     \
        const long arguments[5] = {(long)(a), (long)(b), (long)(c), (long)(d), (long)(e)};                        \
                                                                                                                  \
        if (!SIMULATED())                                                                                         \
            return answer(raw(number, fd, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4])); \
        return answer(transfer(number, fd, arguments));                                                           \
    }

TRANSFER(send, (int fd, const void *bytes, size_t size, int flags), SYS_sendto, fd, bytes, size, flags, 0, 0)
TRANSFER(sendto, (int fd, const void *bytes, size_t size, int flags, const struct sockaddr *to, socklen_t length), SYS_sendto, fd,
         bytes, size, flags, to, length)
TRANSFER(sendmsg, (int fd, const struct msghdr *message, int flags), SYS_sendmsg, fd, message, flags, 0, 0, 0)
TRANSFER(recv, (int fd, void *bytes, size_t size, int flags), SYS_recvfrom, fd, bytes, size, flags, 0, 0)
TRANSFER(recvfrom,
         (int fd, void *restrict bytes, size_t size, int flags, struct sockaddr *restrict from, socklen_t *restrict length),
         SYS_recvfrom, fd, bytes, size, flags, from, length)
TRANSFER(recvmsg, (int fd, struct msghdr *message, int flags), SYS_recvmsg, fd, message, flags, 0, 0, 0)

/* Whoever waits looks again by itself, whichever listener has room. */
static const struct key ANY_ROOM = {0, K_ROOM};

void listeners_changed(void) {
    if (self != NULL)
        (void)wake(ANY_ROOM, ~0u, INT_MAX);
}

/* The kernel's, of a socket that does not wait: the only real thread must not. */
static long connect_at_once(int fd, const void *address, unsigned size) {
    const long flags = raw(SYS_fcntl, fd, F_GETFL, 0, 0, 0, 0);
    long result;

    if (flags < 0)
        return flags;
    (void)raw(SYS_fcntl, fd, F_SETFL, flags | O_NONBLOCK, 0, 0, 0);
    result = raw(SYS_connect, fd, (long)address, size, 0, 0, 0);
    (void)raw(SYS_fcntl, fd, F_SETFL, flags, 0, 0, 0);
    return result;
}

/* As the kernel's connect of a Unix socket: a listener whose queue is full is waited for. */
static long connect_unix(int fd, const void *address, unsigned size) {
    long result;

    name_socket(fd);
    while ((result = connect_at_once(fd, address, size)) == -EAGAIN && waits_for(fd, 0))
        if (block(ANY_ROOM, ~0u, NEVER) != 0)
            return -ECONNREFUSED;
    return result;
}

/* As the kernel's connect. */
long connect_as(int fd, const void *address, unsigned size) {
    long result;

    point(P_IO, config.costs.io_ns);
    if (self->ghost)
        return -ECONNREFUSED;
    if (size >= sizeof(sa_family_t) && ((const struct sockaddr *)address)->sa_family == AF_UNIX)
        result = connect_unix(fd, address, size);
    else
        result = raw(SYS_connect, fd, (long)address, size, 0, 0, 0);
    descriptors_changed();
    point(P_IO, 0);
    return result;
}

int connect(int fd, const struct sockaddr *address, socklen_t size) {
    if (!SIMULATED())
        return (int)answer(raw(SYS_connect, fd, (long)address, size, 0, 0, 0));
    return (int)answer(connect_as(fd, address, size));
}

int accept4(int fd, struct sockaddr *restrict address, socklen_t *restrict size, int flags) {
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    long accepted;

    if (!SIMULATED())
        return (int)answer(raw(SYS_accept4, fd, (long)address, (long)size, flags, 0, 0));
    point(P_IO, config.costs.io_ns);
    if (self->ghost)
        return fail(EBADF);
    if (waits_for(fd, 0) && wait_ready(&ready, 1, NEVER) < 0)
        return fail(EBADF);
    accepted = own(raw(SYS_accept4, fd, (long)address, (long)size, flags, 0, 0));
    if (accepted >= 0)
        listeners_changed();
    return (int)answer(accepted);
}

int accept(int fd, struct sockaddr *restrict address, socklen_t *restrict size) { return accept4(fd, address, size, 0); }

int bind(int fd, const struct sockaddr *address, socklen_t size) {
    if (SIMULATED() && self->ghost)
        return fail(EADDRINUSE);
    return (int)answer(raw(SYS_bind, fd, (long)address, size, 0, 0, 0));
}

int shutdown(int fd, int how) {
    long result;

    if (!SIMULATED())
        return (int)answer(raw(SYS_shutdown, fd, how, 0, 0, 0, 0));
    point(P_IO, config.costs.io_ns);
    if (self->ghost)
        return fail(EBADF);
    result = raw(SYS_shutdown, fd, how, 0, 0, 0, 0);
    descriptors_changed();
    point(P_IO, 0);
    return (int)answer(result);
}
