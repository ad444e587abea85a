#include "base/kernel.h"
#include "tpu/hold.h"
#include "tpu/next.h"
#include "tpu/tpu.h"
#include "tpu/tpu_holds.h"

#include <errno.h>
#include <linux/ioctl.h>
#include <linux/usbdevice_fs.h>

/* The wrappers. Where nothing is assigned, and for all that is no device, they are a load or two and a call of what stands
 * behind them; what has to be done is done around that call, which alone makes the result. The third argument of open,
 * fcntl and ioctl is passed on where the caller gave none, too: on x86-64 and aarch64 that is a register that nobody reads. */

#define EXPORT(name)                                                       \
    extern __typeof__(es_tpu_##name) es_tpu_exported_##name __asm__(#name) \
        __attribute__((alias("es_tpu_" #name), visibility("default")))

/* A call that opens `path`: with the slice, when it is an assigned device. */
#define OPENING(path, flags, call)                                        \
    do {                                                                  \
        const int node = es_tpu_absent() ? -1 : es_tpu_node(path, flags); \
        uint64_t end_ns = 0;                                              \
        int fd;                                                           \
                                                                          \
        if (node < 0 || !es_tpu_ours())                                   \
            return call;                                                  \
        (void)es_tpu_enter();                                             \
        do                                                                \
            fd = call;                                                    \
        while (es_tpu_busy(fd, &end_ns));                                 \
        if (fd >= 0)                                                      \
            es_tpu_hold_opened(fd, node, flags);                          \
        else                                                              \
            es_tpu_leave();                                               \
        return fd;                                                        \
    } while (0)

static int es_tpu_open(const char *path, int flags, mode_t mode) { OPENING(path, flags, es_next_open(path, flags, mode)); }
EXPORT(open);

static int es_tpu_open64(const char *path, int flags, mode_t mode) {
    OPENING(path, flags, ES_NEXT(open64, open_function, (path, flags, mode), syscall(SYS_openat, AT_FDCWD, path, flags, mode)));
}
EXPORT(open64);

/* A device's path is absolute, so that it does not matter what it would be relative to. */
static int es_tpu_openat(int at, const char *path, int flags, mode_t mode) {
    OPENING(path, flags, ES_NEXT(openat, openat_function, (at, path, flags, mode), syscall(SYS_openat, at, path, flags, mode)));
}
EXPORT(openat);

static int es_tpu_openat64(int at, const char *path, int flags, mode_t mode) {
    OPENING(path, flags, ES_NEXT(openat64, openat_function, (at, path, flags, mode), syscall(SYS_openat, at, path, flags, mode)));
}
EXPORT(openat64);

/* What programs call that are compiled with checks of the C library's (_FORTIFY_SOURCE). */
static int es_tpu___open_2(const char *path, int flags) {
    OPENING(path, flags, ES_NEXT(__open_2, open_2_function, (path, flags), syscall(SYS_openat, AT_FDCWD, path, flags, 0)));
}
EXPORT(__open_2);

static int es_tpu___open64_2(const char *path, int flags) {
    OPENING(path, flags, ES_NEXT(__open64_2, open_2_function, (path, flags), syscall(SYS_openat, AT_FDCWD, path, flags, 0)));
}
EXPORT(__open64_2);

static int es_tpu___openat_2(int at, const char *path, int flags) {
    OPENING(path, flags, ES_NEXT(__openat_2, openat_2_function, (at, path, flags), syscall(SYS_openat, at, path, flags, 0)));
}
EXPORT(__openat_2);

static int es_tpu___openat64_2(int at, const char *path, int flags) {
    OPENING(path, flags, ES_NEXT(__openat64_2, openat_2_function, (at, path, flags), syscall(SYS_openat, at, path, flags, 0)));
}
EXPORT(__openat64_2);

static int next_close(int fd) { return ES_NEXT(close, close_function, (fd), syscall(SYS_close, fd)); }

static int es_tpu_close(int fd) {
    struct es_tpu_hold was;
    int result;

    if (es_tpu_holds_none() || !es_tpu_ours() || !es_tpu_hold_closing(fd, &was))
        return next_close(fd);
    result = next_close(fd);
    es_tpu_hold_closed(&was);
    return result;
}
EXPORT(close);

enum { RANGE_CLOEXEC = 4 }; /* CLOSE_RANGE_CLOEXEC of linux/close_range.h, which is younger than the headers we build with */
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

static int next_close_range(unsigned int first, unsigned int last, int flags) {
    return ES_NEXT(close_range, close_range_function, (first, last, flags), syscall(SYS_close_range, first, last, flags));
}

static int es_tpu_close_range(unsigned int first, unsigned int last, int flags) {
    struct es_tpu_hold was[ES_TPU_HOLDS];
    size_t count = 0;
    int result;

    if (es_tpu_holds_none() || !es_tpu_ours())
        return next_close_range(first, last, flags);
    if ((flags & RANGE_CLOEXEC) == 0) {
        while (count < ES_TPU_HOLDS && es_tpu_hold_closing_range(first, last, &was[count]))
            count++;
    }
    result = next_close_range(first, last, flags);
    for (size_t i = 0; i < count; i++) {
        if (result == 0)
            es_tpu_hold_closed(&was[i]);
        else
            es_tpu_hold_stays(&was[i]);
    }
    es_tpu_hold_flagged();
    return result;
}
EXPORT(close_range);

static int es_tpu_dup(int fd) {
    const int copy = ES_NEXT(dup, dup_function, (fd), syscall(SYS_dup, fd));

    if (!es_tpu_holds_none() && copy >= 0 && es_tpu_ours())
        es_tpu_hold_copied(fd, copy);
    return copy;
}
EXPORT(dup);

/* A call that makes `to` another name of `fd`, and closes what it was. */
#define COPYING(fd, to, call)                                      \
    do {                                                           \
        struct es_tpu_hold was;                                    \
        bool had;                                                  \
        int copy;                                                  \
                                                                   \
        if (es_tpu_holds_none() || (fd) == (to) || !es_tpu_ours()) \
            return call;                                           \
        had = es_tpu_hold_closing(to, &was);                       \
        copy = call;                                               \
        if (copy >= 0)                                             \
            es_tpu_hold_copied(fd, copy);                          \
        if (had && copy >= 0)                                      \
            es_tpu_hold_closed(&was);                              \
        else if (had)                                              \
            es_tpu_hold_stays(&was);                               \
        return copy;                                               \
    } while (0)

static int es_tpu_dup2(int fd, int to) { COPYING(fd, to, ES_NEXT(dup2, dup2_function, (fd, to), syscall(SYS_dup3, fd, to, 0))); }
EXPORT(dup2);

static int es_tpu_dup3(int fd, int to, int flags) {
    COPYING(fd, to, ES_NEXT(dup3, dup3_function, (fd, to, flags), syscall(SYS_dup3, fd, to, flags)));
}
EXPORT(dup3);

/* What follows a fcntl. */
static void after_fcntl(int fd, int command, int result) {
    if (result < 0 || !es_tpu_ours())
        return;
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)
        es_tpu_hold_copied(fd, result);
    else if (command == F_SETFD)
        es_tpu_hold_flagged();
}

static int es_tpu_fcntl(int fd, int command, long argument) {
    const int result = ES_NEXT(fcntl, fcntl_function, (fd, command, argument), syscall(SYS_fcntl, fd, command, argument));

    if (!es_tpu_holds_none())
        after_fcntl(fd, command, result);
    return result;
}
EXPORT(fcntl);

static int es_tpu_fcntl64(int fd, int command, long argument) {
    const int result = ES_NEXT(fcntl64, fcntl_function, (fd, command, argument), syscall(SYS_fcntl, fd, command, argument));

    if (!es_tpu_holds_none())
        after_fcntl(fd, command, result);
    return result;
}
EXPORT(fcntl64);

/* Opening a device on the USB takes nothing; claiming an interface of it does. */
static int claim(int fd, unsigned long request, void *argument) {
    uint64_t end_ns = 0;
    int result;

    if (!es_tpu_claimable(fd) || !es_tpu_ours())
        return es_next_ioctl(fd, request, argument);
    (void)es_tpu_enter();
    do
        result = es_next_ioctl(fd, request, argument);
    while (es_tpu_busy(result, &end_ns));
    /* The kernel has read what the argument points to; both structures begin with the interface's number. */
    if (result >= 0)
        es_tpu_hold_claimed(fd, *(const unsigned int *)argument);
    else
        es_tpu_leave();
    return result;
}

static int es_tpu_ioctl(int fd, unsigned long request, void *argument) {
    int result;

    /* Some C libraries' request is an int, with its sign extended here. */
    switch ((unsigned int)request) {
    case USBDEVFS_CLAIMINTERFACE:
    case USBDEVFS_DISCONNECT_CLAIM: return es_tpu_absent() ? es_next_ioctl(fd, request, argument) : claim(fd, request, argument);
    case USBDEVFS_RELEASEINTERFACE:
        result = es_next_ioctl(fd, request, argument);
        if (result >= 0 && !es_tpu_holds_none() && es_tpu_ours())
            es_tpu_hold_released(fd, *(const unsigned int *)argument);
        return result;
    default: return es_next_ioctl(fd, request, argument);
    }
}
EXPORT(ioctl);
