#include "link/channel.h"

#include <errno.h>
#include <string.h>
#include <sys/un.h>

#include "base/kernel.h"

enum { ROOM = 4 }; /* descriptors for which ES_FDS leave room in a control message, aligned */

enum { FD_FROM = 700 }; /* out of the way of what programs close or expect low */

bool es_channel_open(struct es_channel *channel, const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd, high;

    if (strlen(path) >= sizeof(address.sun_path)) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    fd = es_kernel_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return false;
    high = es_kernel_control(fd, F_DUPFD_CLOEXEC, FD_FROM);
    if (high >= 0) {
        (void)es_kernel_close(fd);
        fd = high;
    }
    if (es_kernel_connect(fd, &address, sizeof(address)) != 0 || es_kernel_stat(fd, &channel->identity) != 0) {
        const int error = errno;

        (void)es_kernel_close(fd);
        errno = error;
        return false;
    }
    channel->fd = fd;
    return true;
}

bool es_channel_nobody_listens(int error) {
    return error == ENOENT || error == ECONNREFUSED || error == EAGAIN || error == EINTR;
}

bool es_channel_there(const struct es_channel *channel) {
    struct stat now;

    return channel->fd >= 0 && es_kernel_stat(channel->fd, &now) == 0 && now.st_ino == channel->identity.st_ino &&
           now.st_dev == channel->identity.st_dev;
}

void es_channel_close(struct es_channel *channel) {
    if (es_channel_there(channel))
        (void)es_kernel_close(channel->fd);
    channel->fd = -1;
}

void es_channel_end(struct es_channel *channel) {
    if (es_channel_there(channel))
        (void)es_kernel_shutdown(channel->fd);
    es_channel_close(channel);
}

int es_channel_send(const struct es_channel *channel, const void *record, size_t bytes) {
    if (!es_channel_there(channel))
        return EBADF;
    if (es_kernel_send(channel->fd, record, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)bytes)
        return 0;
    return errno == EINTR ? EAGAIN : errno;
}

ssize_t es_channel_receive(const struct es_channel *channel, void *packet, size_t size, int fds[ES_FDS]) {
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(ES_FDS * sizeof(int))];
    } control = {.bytes = {0}};
    struct iovec part = {packet, size};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
    const ssize_t bytes = es_kernel_receive(channel->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    for (struct cmsghdr *c = bytes > 0 ? CMSG_FIRSTHDR(&message) : NULL; c != NULL; c = CMSG_NXTHDR(&message, c)) {
        int got[ROOM] = {-1, -1, -1, -1};
        const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        memcpy(got, CMSG_DATA(c), (count < ROOM ? count : ROOM) * sizeof(int));
        for (int i = 0; i < ROOM; i++) {
            if (fds != NULL && i < ES_FDS && fds[i] < 0)
                fds[i] = got[i];
            else if (got[i] >= 0)
                (void)es_kernel_close(got[i]);
        }
    }
    return (message.msg_flags & MSG_TRUNC) != 0 ? (ssize_t)size + 1 : bytes;
}

bool es_channel_readable(const struct es_channel *channel, int timeout_ms) {
    struct pollfd wait = {.fd = channel->fd, .events = POLLIN};
    struct timespec left = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
    int ready;

    /* What is left of the time is kept by the kernel, so that signals, however many, do not make it longer. */
    do
        ready = es_kernel_poll(&wait, &left);
    while (ready < 0 && errno == EINTR);
    return ready > 0;
}

bool es_channel_file_holds(int fd, size_t bytes) {
    struct stat status;
    const int seals = fd < 0 ? -1 : es_kernel_control(fd, F_GET_SEALS, 0);

    return fd >= 0 && es_kernel_stat(fd, &status) == 0 && (size_t)status.st_size >= bytes &&
           (seals < 0 || (seals & F_SEAL_SHRINK) != 0);
}
