/* Processes that are killed, and what is left of them. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "programs.h"

enum { MESSAGES = 6 };

static int ends[2], memory;
static int64_t sent;
static int victim, pidfd;
static int64_t woken;
static uint64_t began_at, unwinds_at; /* in points of the victim */

static int lock_of(int fd, int command) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

    return fcntl(fd, command, &lock) != 0 ? -errno : command == F_GETLK && lock.l_type != F_UNLCK;
}

static int open_memory(void) {
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", memory);
    return open(path, O_RDWR | O_CLOEXEC);
}

static volatile uint32_t *map_memory(int fd) { return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0); }

/* What the victim does: each step touches something that others can see. */
static void live(int fd) {
    const int file = open_memory();
    volatile uint32_t *words = map_memory(file);

    (void)lock_of(file, F_SETLK);
    for (int i = 0; i < MESSAGES; i++) {
        words[0]++;
        sent += send(fd, "x", 1, MSG_NOSIGNAL) == 1;
        words[1]++;
        (void)syscall(SYS_futex, &words[2], FUTEX_WAKE, 1, NULL, NULL, 0);
        vt_sleep(10 * US);
    }
    unwinds_at = vt_points_of(victim) - began_at;
    words[0] = words[1] = 1000; /* what a program does as it unwinds */
    (void)close(file);
    (void)close(fd);
}

static void live_as_thread(void *argument) {
    live(*(int *)argument);
    vt_sleep(1000 * MS);
}

/* What is seen of the victim after its end. */
static void look(int fd) {
    struct pollfd gone = {.fd = pidfd, .events = POLLIN};
    const int file = open_memory();
    volatile uint32_t *words = map_memory(file);
    uint32_t seen[2];
    int64_t received = 0;
    char letter;

    while (recv(fd, &letter, 1, 0) == 1)
        received++;
    say("gone", poll(&gone, 1, 50));
    seen[0] = words[0];
    seen[1] = words[1];
    vt_sleep(100 * MS);
    say("received", received);
    say("first", seen[0]);
    say("second", seen[1]);
    say("written_later", words[0] != seen[0] || words[1] != seen[1]);
    say("locked", lock_of(file, F_GETLK));
    say("woken", woken);
    say("unwinds_at", (int64_t)unwinds_at);
}

static void wait_for_wakes(void *argument) {
    volatile uint32_t *words = map_memory(open_memory());

    (void)argument;
    for (;;)
        woken += syscall(SYS_futex, &words[2], FUTEX_WAIT, 0, NULL, NULL, 0) == 0;
}

static void begin_deaths(void) {
    memory = memfd_create("memory", MFD_CLOEXEC);
    must(memory >= 0 && ftruncate(memory, 4096) == 0, "a file in memory");
}

static void connect_pair(void *argument) {
    (void)argument;
    must(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0, "a pair of sockets");
}

void victim_dies(void) {
    int own;

    begin_deaths();
    victim = vt_process("victim", NULL, 1);
    (void)vt_spawn(victim, "connects", connect_pair, NULL);
    vt_sleep(MS);
    own = fcntl(ends[0], F_DUPFD_CLOEXEC, 0);
    must(close(ends[0]) == -1 && errno == EBADF, "another process's descriptor is not ours to close");
    (void)vt_spawn(0, "waits", wait_for_wakes, NULL);
    pidfd = pidfd_open(vt_pid(victim), 0);
    began_at = vt_points_of(victim);
    if (option("number", 0) != 0)
        vt_at(victim, began_at + option("number", 0), VT_KILL, 0);
    (void)vt_spawn(victim, "lives", live_as_thread, &ends[1]);
    if (option("number", 0) == 0) {
        vt_sleep(100 * MS);
        say("points_of", (int64_t)(vt_points_of(victim) - began_at));
        vt_kill(victim);
    }
    look(own);
    say("sent", sent);
}

static struct vt_sem looked;

static void look_as_thread(void *argument) {
    (void)argument;
    must(close(ends[0]) == 0, "the victim alone has the other end");
    pidfd = pidfd_open(vt_pid(victim), 0);
    look(ends[1]);
    vt_sem_post(&looked);
}

void judge_dies(void) {
    const int watcher = vt_process("watcher", NULL, 1);
    int own;

    begin_deaths();
    victim = vt_process("victim", NULL, 1);
    (void)vt_spawn(watcher, "connects", connect_pair, NULL);
    vt_sleep(MS);
    vt_enter(victim, "main");
    own = fcntl(ends[0], F_DUPFD_CLOEXEC, 0);
    (void)vt_spawn(watcher, "waits", wait_for_wakes, NULL);
    (void)vt_spawn(watcher, "looks", look_as_thread, NULL);
    vt_sleep(MS);
    began_at = vt_points_of(victim);
    if (option("number", 0) != 0)
        vt_at(victim, began_at + option("number", 0), VT_KILL, 0);
    live(own);
    if (option("number", 0) == 0) {
        say("points_of", (int64_t)(vt_points_of(victim) - began_at));
        vt_kill(victim);
    }
    must(poll(NULL, 0, 10) == -1 && errno == EBADF, "a ghost waits for nothing");
    vt_enter(0, "again");
    vt_sem_wait(&looked);
    say("sent", sent);
}

static int reused;

/* The next descriptor has the number of one that the victim had. */
static void kill_victim(void *argument) {
    (void)argument;
    vt_sleep(MS);
    vt_kill(victim);
    reused = memfd_create("reused", MFD_CLOEXEC);
}

void judge_is_killed(void) {
    int error, fd;

    victim = vt_process("victim", NULL, 1);
    (void)vt_spawn(0, "kills", kill_victim, NULL);
    vt_enter(victim, "main");
    fd = memfd_create("first", MFD_CLOEXEC);
    error = poll(NULL, 0, -1) == -1 ? errno : 0;
    say("ended_ms", (int64_t)((vt_now() - 1000 * MS) / MS));
    say("reused", fd == reused);
    say("written", write(fd, "x", 1));
    say("cut", ftruncate(fd, 10));
    (void)close(fd);
    vt_enter(0, "again");
    say("error", error);
    say("size", lseek(reused, 0, SEEK_END));
}
