/* What a program does with descriptors, with a share of an EdgeTPU: each thing by its name, as the first argument. Ends with
 * 0 when all was as without the hook; else says what was not. The device is the second argument. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "edgeshare_slice.h"

#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "line %d: %s (errno %d)\n", __LINE__, #condition, errno); \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)

extern char **environ;
static const char *device;

static int opened(int flags) {
    const int fd = open(device, O_RDWR | flags);

    CHECK(fd >= 0);
    return fd;
}

/* Asks the tests whether the slice is as it should be. */
static void say(const char *what) {
    char answer[16];

    printf("%s\n", what);
    CHECK(fflush(stdout) == 0 && fgets(answer, sizeof(answer), stdin) != NULL);
}

static void keep_errno(void) {
    int fd;

    errno = 42;
    fd = opened(O_CLOEXEC);
    CHECK(errno == 42);
    CHECK(close(fd) == 0 && errno == 42);
    CHECK(close(fd) == -1 && errno == EBADF);
    CHECK(open("/nowhere/at/all", O_RDWR) == -1 && errno == ENOENT);
    CHECK(open((const char *)1, O_RDWR) == -1 && errno == EFAULT);
    CHECK(open(NULL, O_RDWR) == -1 && errno == EFAULT);
    CHECK(ioctl(-1, 0x8004550f, (void *)1) == -1 && errno == EBADF);
    CHECK(dup(-1) == -1 && errno == EBADF);
    CHECK(dup2(-1, 5) == -1 && errno == EBADF);
    CHECK(dup3(0, 0, 0) == -1 && errno == EINVAL);
    CHECK(fcntl(-1, F_DUPFD, 0) == -1 && errno == EBADF);
    fd = open("/tmp", O_TMPFILE | O_RDWR, 0640);
    CHECK(fd >= 0 && close(fd) == 0);
}

/* The slice is kept until the last of all names of the descriptor is closed. */
static void copies(void) {
    const int fd = opened(O_CLOEXEC);
    const int first = dup(fd), second = fcntl(fd, F_DUPFD_CLOEXEC, 50), third = dup2(fd, 60), fourth = dup3(fd, 61, O_CLOEXEC);

    CHECK(first >= 0 && second >= 50 && third == 60 && fourth == 61);
    CHECK(close(fd) == 0);
    say("held");
    CHECK(close(first) == 0 && close(second) == 0 && close(third) == 0);
    say("held");
    CHECK(dup2(STDERR_FILENO, fourth) == fourth);
    say("free");
    CHECK(close(fourth) == 0);
}

static void ranges(void) {
    const int fd = opened(0);

    CHECK(fd < 100);
    CHECK(dup2(fd, 110) == 110 && dup2(fd, 120) == 120);
    CHECK(close(fd) == 0);
    CHECK(syscall(SYS_close_range, 130, 140, 0) == 0);
#ifdef CLOSE_RANGE_CLOEXEC
    CHECK(close_range(100, 130, CLOSE_RANGE_CLOEXEC) == 0);
    say("held");
    CHECK(close_range(115, 130, 0) == 0);
    say("held");
    CHECK(close_range(100, 130, 0) == 0);
#else
    CHECK(close(110) == 0 && close(120) == 0);
#endif
    say("free");
}

/* Who only reads does not take the device. */
static void read_only(void) {
    const int fd = open(device, O_RDONLY);

    CHECK(fd >= 0);
    say("free");
    CHECK(close(fd) == 0);
}

static void wait_for(pid_t child) {
    int status;

    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* A child has its parent's descriptors, but the slice is the parent's to give back. */
static void forks(void) {
    const int fd = opened(O_CLOEXEC);
    pid_t child = fork();

    if (child == 0) {
        CHECK(close(fd) == 0);
        _exit(0);
    }
    wait_for(child);
    say("held");
    child = fork();
    if (child == 0) {
        CHECK(close(fd) == 0);
        /* Its own: waits for the parent, which closes it. */
        _exit(close(opened(O_CLOEXEC)) == 0 ? 0 : 1);
    }
    say("held");
    CHECK(close(fd) == 0);
    wait_for(child);
    say("free");
}

/* One made by vfork closes its own descriptors, in its parent's memory. */
static void spawns(void) {
    const int fd = opened(0);
    char *arguments[] = {"/bin/true", NULL};
    volatile int closed = 0;
    pid_t child = vfork();

    if (child == 0) {
        closed = close(fd);
        execv("/bin/true", arguments);
        _exit(1);
    }
    wait_for(child);
    CHECK(closed == 0);
    say("held");
    CHECK(posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) == 0);
    wait_for(child);
    say("held");
    CHECK(close(fd) == 0);
    say("free");
}

/* Another program takes this one's place, with the descriptor: it has the device, and so the slice. */
static void executes(void) {
    char *arguments[] = {"sh", "-c", "echo held; read answer; echo over", NULL};

    (void)opened(0);
    execv("/bin/sh", arguments);
}

/* … and without. */
static void executes_without(void) {
    char *arguments[] = {"sh", "-c", "echo free; read answer", NULL};
    const int fd = opened(0);

    CHECK(fcntl(fd, F_SETFD, FD_CLOEXEC) == 0);
    execv("/bin/sh", arguments);
}

static void *open_and_close(void *nothing) {
    for (int i = 0; i < 100; i++) {
        const int fd = opened(O_CLOEXEC), copy = dup(fd);

        CHECK(copy >= 0 && close(fd) == 0 && close(copy) == 0);
        CHECK(edgeshare_slice_begin() >= 0);
        CHECK(edgeshare_slice_end() >= 0);
    }
    return nothing;
}

static void threads(void) {
    pthread_t all[4];

    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&all[i], NULL, open_and_close, NULL) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(all[i], NULL) == 0);
    say("free");
}

static volatile sig_atomic_t handled;

static void handle(int number) {
    const int error = errno;
    const int fd = open(device, O_RDWR | O_CLOEXEC);

    (void)number;
    if (fd >= 0)
        (void)close(fd);
    handled++;
    errno = error;
}

/* Opens and closes the device in a handler, whatever it interrupts. */
static void signals(void) {
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    const pid_t parent = getpid();
    pid_t child;

    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    child = fork();
    if (child == 0) {
        for (int i = 0; i < 500; i++) {
            (void)kill(parent, SIGUSR1);
            (void)usleep(300);
        }
        _exit(0);
    }
    for (int i = 0; i < 300; i++)
        CHECK(close(opened(O_CLOEXEC)) == 0);
    wait_for(child);
    CHECK(handled > 0);
    say("free");
}

/* Slices: what is parked is back, the flag of the descriptor stays, and one that is mapped is kept. */
static void slices(void) {
    const int fd = opened(O_CLOEXEC);
    char byte;
    void *map;

    CHECK(edgeshare_slice_begin() >= 0);
    CHECK(edgeshare_slice_begin() == 0);
    CHECK(edgeshare_slice_end() == 1);
    CHECK(edgeshare_slice_end() == 0);
    say("free");
    CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    CHECK(read(fd, &byte, 1) == 0); /* there is nothing behind it */
    CHECK(edgeshare_slice_begin() == 1);
    CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    say("held");
    map = mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0);
    CHECK(map != MAP_FAILED);
    CHECK(edgeshare_slice_end() == 1);
    say("held");
    CHECK(munmap(map, 1) == 0);
    CHECK(edgeshare_slice_begin() == 0);
    CHECK(edgeshare_slice_end() == 0);
    say("free");
    /* Closed while it is parked, the number is another file's. */
    CHECK(close(fd) == 0);
    CHECK(open("/dev/null", O_RDONLY) == fd);
    CHECK(edgeshare_slice_begin() >= 0);
    CHECK(read(fd, &byte, 1) == 0);
    CHECK(edgeshare_slice_end() == 0);
    CHECK(edgeshare_slice_end() == 0);
    say("free");
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } things[] = {
        {"keep_errno", keep_errno}, {"copies", copies},   {"ranges", ranges},
        {"read_only", read_only},   {"forks", forks},     {"spawns", spawns},
        {"executes", executes},     {"threads", threads}, {"executes_without", executes_without},
        {"signals", signals},       {"slices", slices},
    };

    device = argc > 2 ? argv[2] : "/dev/apex_0";
    for (size_t i = 0; argc > 1 && i < sizeof(things) / sizeof(things[0]); i++) {
        if (strcmp(argv[1], things[i].name) == 0) {
            things[i].run();
            return 0;
        }
    }
    return 2;
}
