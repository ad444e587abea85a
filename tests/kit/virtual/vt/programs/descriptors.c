/* Descriptors: timers, sockets, locks of files, and what a process can learn of its peer. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "programs.h"

static socklen_t address_of(struct sockaddr_un *address) {
    const int length = snprintf(address->sun_path, sizeof(address->sun_path), "%cserver of %d", 0, (int)getppid());

    address->sun_family = AF_UNIX;
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)length);
}

static int listens(void) {
    struct sockaddr_un address;
    const socklen_t size = address_of(&address);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    must(bind(fd, (struct sockaddr *)&address, size) == 0 && listen(fd, 4) == 0, "a listener");
    return fd;
}

static int connects(void) {
    struct sockaddr_un address;
    const socklen_t size = address_of(&address);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    must(connect(fd, (struct sockaddr *)&address, size) == 0, "a connection");
    return fd;
}

static int watches(int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    const int epoll = epoll_create1(EPOLL_CLOEXEC);

    must(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0, "an epoll");
    return epoll;
}

void timers(void) {
    const struct itimerspec times = {.it_value = {0, 3 * (long)MS}, .it_interval = {0, 2 * (long)MS}};
    struct itimerspec left, none = {.it_value = {0, 0}};
    struct epoll_event event;
    const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), epoll = watches(timer);
    const uint64_t began = vt_now();
    uint64_t count;

    must(timerfd_settime(timer, 0, &times, NULL) == 0, "a timer is set");
    for (int i = 0; i < 3; i++) {
        must(epoll_wait(epoll, &event, 1, -1) == 1, "an expiry");
        must(read(timer, &count, sizeof(count)) == (ssize_t)sizeof(count) && count == 1, "one expiry");
        say("expired_us", (int64_t)((vt_now() - began) / US));
    }
    must(timerfd_gettime(timer, &left) == 0, "what is left");
    say("interval_ms", left.it_interval.tv_nsec / (long)MS);
    vt_sleep(5 * MS);
    must(timerfd_settime(timer, 0, &none, &left) == 0, "a timer is disarmed");
    say("after_disarming", epoll_wait(epoll, &event, 1, 4));
    say("ended_us", (int64_t)((vt_now() - began) / US));
    must(close(timer) == 0 && close(epoll) == 0 && close(epoll) == -1 && errno == EBADF, "closed once");
}

static void echo(void *argument) {
    const int fd = connects();
    char text[16];
    ssize_t size;

    (void)argument;
    while ((size = recv(fd, text, sizeof(text), 0)) > 0) {
        vt_spend(10 * US);
        (void)send(fd, text, (size_t)size, 0);
    }
    vt_note("ended", (uint64_t)vt_now());
    must(close(fd) == 0, "closed");
}

void sockets(void) {
    const int listener = listens(), client = vt_process("client", NULL, 1);
    int64_t echoed = 0;
    char text[16];

    (void)vt_spawn(client, "echoes", echo, NULL);
    const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    for (int i = 0; i < 20; i++) {
        must(send(fd, "hello", 6, 0) == 6, "sent");
        echoed += recv(fd, text, sizeof(text), 0) == 6 && strcmp(text, "hello") == 0;
    }
    must(shutdown(fd, SHUT_WR) == 0, "shut down");
    say("echoed", echoed);
    say("end", recv(fd, text, sizeof(text), 0));
    say("broken", send(fd, "x", 1, 0) == -1 && errno == EPIPE);
}

static int connected_count, refused;

static void connect_often(void *argument) {
    struct sockaddr_un address;
    const socklen_t size = address_of(&address);

    (void)argument;
    while (connect(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), (struct sockaddr *)&address, size) == 0)
        connected_count++;
    refused = errno;
}

static void connect_impatiently(void *argument) {
    struct sockaddr_un address;
    const socklen_t size = address_of(&address);
    const int impatient = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    (void)argument;
    must(connect(impatient, (struct sockaddr *)&address, size) == -1 && errno == EAGAIN, "no room");
}

void crowd(void) {
    const int listener = listens(), client = vt_process("client", NULL, 1);

    (void)vt_spawn(client, "connects", connect_often, NULL);
    vt_sleep(1 * MS);
    say("at_first", connected_count);
    (void)vt_spawn(client, "does not wait", connect_impatiently, NULL);
    vt_sleep(1 * MS);
    for (int i = 0; i < 3; i++)
        must(accept(listener, NULL, NULL) >= 0, "accepted");
    vt_sleep(1 * MS);
    say("after_three", connected_count);
    must(close(listener) == 0, "closed");
    vt_sleep(1 * MS);
    say("refused", refused == ECONNREFUSED);
}

static int connected;
static int client_pid;

static void connect_and_sleep(void *argument) {
    (void)argument;
    client_pid = getpid();
    connected = connects();
    vt_sleep(1000 * MS);
}

static int peer_option(int fd, int option) {
    struct ucred credentials = {0};
    socklen_t size = sizeof(credentials);

    return getsockopt(fd, SOL_SOCKET, option, &credentials, &size) == 0 ? credentials.pid : -errno;
}

/* The state, or -errno; *began from field 22. */
static int state_of(int pid, long *began) {
    char path[32], line[256] = "";
    char *field;
    int fd, state;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    must(read(fd, line, sizeof(line) - 1) > 0 && close(fd) == 0, "a line is read");
    field = strrchr(line, ')') + 2;
    state = *field;
    for (int i = 3; i < 22; i++)
        field = strchr(field, ' ') + 1;
    *began = strtol(field, NULL, 10);
    return state;
}

void peers(void) {
    const int listener = listens(), client = vt_process("client (1)", NULL, 1);
    long began[2] = {0};
    struct epoll_event event;

    (void)vt_spawn(client, "connects", connect_and_sleep, NULL);
    const int fd = accept(listener, NULL, NULL), pid = peer_option(fd, SO_PEERCRED), process = pidfd_open(pid, 0);
    const int epoll = watches(process);

    say("its_pid", pid == client_pid && pid == vt_pid(client) && pid != getpid());
    say("pidfd_option", peer_option(fd, 77));
    say("there", kill(pid, 0));
    say("state", state_of(pid, &began[0]));
    vt_stop(client);
    say("stopped", state_of(pid, &began[1]));
    say("began_alike", began[0] != 0 && began[0] == began[1]);
    say("other_files", access("/proc/self/stat", R_OK) == 0 && fopen("/proc/1001/cgroup", "r") == NULL);
    say("readable", epoll_wait(epoll, &event, 1, 5));
    must(kill(pid, SIGKILL) == 0, "killed");
    say("readable_after", epoll_wait(epoll, &event, 1, 5));
    say("gone", kill(pid, 0) == -1 && errno == ESRCH);
    say("no_state", state_of(pid, &began[0]) == -ENOENT);
    say("no_pidfd", pidfd_open(pid, 0) == -1 && errno == ESRCH);
}

static int lock_file(int fd, int command, short type, long from, long length) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = from, .l_len = length};

    if (fcntl(fd, command, &lock) != 0)
        return -errno;
    return command == F_GETLK && lock.l_type != F_UNLCK ? lock.l_pid : 0;
}

static int open_file(void) {
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", (int)option("file", 0));
    return open(path, O_RDWR | O_CLOEXEC);
}

static void hold_locks(void *argument) {
    const int fd = open_file(), other = open_file();

    (void)argument;
    must(lock_file(fd, F_SETLK, F_WRLCK, 0, 100) == 0, "a lock");
    must(lock_file(fd, F_SETLK, F_UNLCK, 40, 20) == 0, "its middle given back");
    vt_sleep(10 * MS);
    (void)close(other); /* takes all of them with it */
    vt_sleep(1000 * MS);
}

void record_locks(void) {
    const int holder = vt_process("holder", NULL, 1), fd = open_file();

    (void)vt_spawn(holder, "holds", hold_locks, NULL);
    vt_sleep(MS);
    say("holder", lock_file(fd, F_GETLK, F_WRLCK, 0, 10) == vt_pid(holder));
    say("refused", lock_file(fd, F_SETLK, F_RDLCK, 60, 1));
    say("between", lock_file(fd, F_SETLK, F_WRLCK, 40, 20));
    say("behind", lock_file(fd, F_SETLK, F_WRLCK, 100, 0));
    say("description", lock_file(fd, F_OFD_SETLK, F_WRLCK, 45, 1));
    must(lock_file(fd, F_SETLKW, F_WRLCK, 0, 10) == 0, "a lock that was waited for");
    say("waited_ms", (int64_t)((vt_now() - 1000 * MS) / MS));
}
