/* A simulated EdgeTPU: what the kernel's drivers answer, without a kernel's part. The library is linked to, or preloaded
 * behind whatever else is; it leads the paths of devices into the machine's folder and holds them to one process at a time.
 *
 *     $SIMGPU_MACHINE/tpus/dev/apex_0            stands for /dev/apex_0: opened for writing by one process at a time
 *     $SIMGPU_MACHINE/tpus/dev/bus/usb/001/004   for that path: any may open it, one descriptor at a time claims an interface
 *     $SIMGPU_MACHINE/tpus/log                   what ran: pid, begin and end (CLOCK_MONOTONIC, ns), tag
 *
 * Who has a device is told by locks that belong to the open file (OFD), so that they end when a driver's would: with the last
 * descriptor, in whatever process, however that ends. */
#include "tpu/simtpu.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/ioctl.h>
#include <linux/usbdevice_fs.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Bytes of a device's file that are locked. */
enum { OWNED, CLAIMED = 16 };

#define VISIBLE __attribute__((visibility("default")))

static bool beginning(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

/* The folder that stands for "/"; NULL where there is no machine. */
static const char *root(char *path, size_t size) {
    const char *machine = getenv("SIMGPU_MACHINE");

    if (machine == NULL || snprintf(path, size, "%s/tpus", machine) >= (int)size)
        return NULL;
    return path;
}

/* What stands for a path: itself, unless it is a device of the machine. */
static const char *place(const char *path, char *into, size_t size) {
    char folder[PATH_MAX];

    /* A path that cannot be read is for the kernel to complain of. */
    if ((uintptr_t)path < 4096 || (!beginning(path, "/dev/apex_") && !beginning(path, "/dev/bus/usb/")) ||
        root(folder, sizeof(folder)) == NULL || snprintf(into, size, "%s%s", folder, path) >= (int)size ||
        syscall(SYS_faccessat, AT_FDCWD, into, F_OK) != 0)
        return path;
    return into;
}

static int lock(int fd, int command, short type, off_t byte) {
    struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    int result;

    do
        result = (int)syscall(SYS_fcntl, fd, command, &range);
    while (result != 0 && errno == EINTR);
    if (result == 0 && command == F_OFD_GETLK)
        return range.l_type != F_UNLCK;
    return result;
}

/* As Coral's driver does: the first process to open it for writing owns it until its last close; others are turned away.
 * (The real one says EPERM, and lets root in beside: SIMTPU_BUSY=EPERM for the first.) */
static int own(int fd) {
    static const off_t GUARD = 1, OWNER = 32;
    const char *busy = getenv("SIMTPU_BUSY");
    sigset_t all, before;
    pid_t owner = 0;
    int result = 0;

    /* A handler that opened the device, too, would wait here for what it interrupted. */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    (void)lock(fd, F_OFD_SETLKW, F_WRLCK, GUARD);
    if (lock(fd, F_OFD_SETLK, F_WRLCK, OWNED) == 0) {
        owner = getpid();
        (void)!pwrite(fd, &owner, sizeof(owner), OWNER);
    } else if (pread(fd, &owner, sizeof(owner), OWNER) != (ssize_t)sizeof(owner) || owner != getpid()) {
        result = -1;
    }
    /* All that the owner opens share it. */
    if (result == 0)
        (void)lock(fd, F_OFD_SETLK, F_RDLCK, OWNED);
    (void)lock(fd, F_OFD_SETLK, F_UNLCK, GUARD);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (result != 0)
        errno = busy != NULL && strcmp(busy, "EPERM") == 0 ? EPERM : EBUSY;
    return result;
}

static int open_at(int at, const char *path, int flags, mode_t mode) {
    const int before = errno;
    char into[PATH_MAX];
    const char *placed = place(path, into, sizeof(into));
    const int fd = (int)syscall(SYS_openat, at, placed, flags, mode);

    if (placed == into && fd >= 0 && beginning(path, "/dev/apex_") && (flags & O_ACCMODE) != O_RDONLY && own(fd) != 0) {
        const int error = errno;

        (void)syscall(SYS_close, fd);
        errno = error;
        return -1;
    }
    if (fd >= 0)
        errno = before;
    return fd;
}

/* The mode is in a register whether the caller gave one or not. */
static mode_t mode_of(va_list arguments, int flags) {
    return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

#define OPEN(name)                                       \
    VISIBLE int name(const char *path, int flags, ...) { \
        va_list arguments;                               \
        mode_t mode;                                     \
                                                         \
        va_start(arguments, flags);                      \
        mode = mode_of(arguments, flags);                \
        va_end(arguments);                               \
        return open_at(AT_FDCWD, path, flags, mode);     \
    }
#define OPENAT(name)                                             \
    VISIBLE int name(int at, const char *path, int flags, ...) { \
        va_list arguments;                                       \
        mode_t mode;                                             \
                                                                 \
        va_start(arguments, flags);                              \
        mode = mode_of(arguments, flags);                        \
        va_end(arguments);                                       \
        return open_at(at, path, flags, mode);                   \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

/* The path below the machine's folder of the device that a descriptor is of; NULL where it is of none. */
static const char *device(int fd, char *path, size_t size) {
    char folder[PATH_MAX], link[32];
    const ssize_t bytes = snprintf(link, sizeof(link), "/proc/self/fd/%d", fd) > 0 ? readlink(link, path, size - 1) : -1;

    if (bytes < 0 || root(folder, sizeof(folder)) == NULL)
        return NULL;
    path[bytes] = '\0';
    if (!beginning(path, folder) || !beginning(path + strlen(folder), "/dev/"))
        return NULL;
    return path + strlen(folder);
}

VISIBLE int ioctl(int fd, unsigned long request, ...) {
    char path[PATH_MAX];
    const char *name;
    va_list arguments;
    void *argument;

    va_start(arguments, request);
    argument = va_arg(arguments, void *);
    va_end(arguments);
    if (request != USBDEVFS_CLAIMINTERFACE && request != USBDEVFS_RELEASEINTERFACE && request != USBDEVFS_DISCONNECT_CLAIM)
        return (int)syscall(SYS_ioctl, fd, request, argument);
    name = device(fd, path, sizeof(path));
    if (name == NULL || !beginning(name, "/dev/bus/usb/"))
        return (int)syscall(SYS_ioctl, fd, request, argument);
    if (request == USBDEVFS_RELEASEINTERFACE)
        return lock(fd, F_OFD_SETLK, F_UNLCK, CLAIMED + *(const unsigned int *)argument);
    if (lock(fd, F_OFD_SETLK, F_WRLCK, CLAIMED + *(const unsigned int *)argument) != 0) {
        errno = EBUSY;
        return -1;
    }
    return 0;
}

static uint64_t now_ns(void) {
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool claimed(const char *path) {
    const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
    bool found;

    if (fd < 0)
        return false;
    found = lock(fd, F_OFD_GETLK, F_WRLCK, CLAIMED) == 1;
    (void)syscall(SYS_close, fd);
    return found;
}

VISIBLE int simtpu_infer(int fd, uint64_t length_ns) {
    const uint64_t begin_ns = now_ns(), end_ns = begin_ns + length_ns;
    const struct timespec until = {(time_t)(end_ns / 1000000000u), (long)(end_ns % 1000000000u)};
    char path[PATH_MAX], folder[PATH_MAX], line[128];
    const char *name = device(fd, path, sizeof(path));
    const char *tag = getenv("SIMGPU_TAG");
    int log, length;

    if (name == NULL) {
        errno = ENODEV;
        return -1;
    }
    if (beginning(name, "/dev/bus/usb/") && !claimed(path)) {
        errno = EACCES;
        return -1;
    }
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {}
    (void)root(folder, sizeof(folder));
    (void)strncat(folder, "/log", sizeof(folder) - strlen(folder) - 1);
    log = (int)syscall(SYS_openat, AT_FDCWD, folder, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    length = snprintf(line, sizeof(line), "%d %llu %llu %s %s\n", (int)getpid(), (unsigned long long)begin_ns,
                      (unsigned long long)now_ns(), name, tag != NULL && tag[0] != '\0' ? tag : "-");
    if (log < 0 || write(log, line, (size_t)length) != length)
        return -1;
    return (int)syscall(SYS_close, log);
}
