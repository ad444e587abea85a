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

/* A call that opens a path, which takes the slice before where that is an assigned device. */
struct opening {
    int node; /* of the device; below 0: the call is none of ours */
    int flags;
    uint64_t end_ns;
};

static struct opening begin_opening(const char *path, int flags) {
    struct opening opening = {.node = es_tpu_absent() ? -1 : es_tpu_node(path, flags), .flags = flags};

    if (opening.node >= 0 && !es_tpu_ours())
        opening.node = -1;
    if (opening.node >= 0)
        (void)es_tpu_enter();
    return opening;
}

/* Has the call to be made again, as another process still had the device? */
static bool again(struct opening *opening, int fd) { return opening->node >= 0 && es_tpu_busy(fd, &opening->end_ns); }

/* Returns the call's result. */
static int end_opening(const struct opening *opening, int fd) {
    if (opening->node >= 0 && fd >= 0)
        es_tpu_hold_opened(fd, opening->node, opening->flags);
    else if (opening->node >= 0)
        es_tpu_leave();
    return fd;
}

static int es_tpu_open(const char *path, int flags, mode_t mode) {
    struct opening opening = begin_opening(path, flags);
    int fd;

    do
        fd = es_next_open(path, flags, mode);
    while (again(&opening, fd));
    return end_opening(&opening, fd);
}
EXPORT(open);

static int es_tpu_open64(const char *path, int flags, mode_t mode) {
    struct opening opening = begin_opening(path, flags);
    int fd;

    do
        fd = ES_NEXT(open64, open_function, (path, flags, mode), syscall(SYS_openat, AT_FDCWD, path, flags, mode));
    while (again(&opening, fd));
    return end_opening(&opening, fd);
}
EXPORT(open64);

/* A device's path is absolute, so that it does not matter what it would be relative to. */
static int es_tpu_openat(int at, const char *path, int flags, mode_t mode) {
    struct opening opening = begin_opening(path, flags);
    int fd;

    do
        fd = ES_NEXT(openat, openat_function, (at, path, flags, mode), syscall(SYS_openat, at, path, flags, mode));
    while (again(&opening, fd));
    return end_opening(&opening, fd);
}
EXPORT(openat);

static int es_tpu_openat64(int at, const char *path, int flags, mode_t mode) {
    struct opening opening = begin_opening(path, flags);
    int fd;

    do
        fd = ES_NEXT(openat64, openat_function, (at, path, flags, mode), syscall(SYS_openat, at, path, flags, mode));
    while (again(&opening, fd));
    return end_opening(&opening, fd);
}
EXPORT(openat64);

/* What programs call that are compiled with checks of the C library's (_FORTIFY_SOURCE). */
static int es_tpu___open_2(const char *path, int flags) {
    struct opening opening = begin_opening(path, flags);
    int fd;

    do
        fd = ES_NEXT(__open_2, open_2_function, (path, flags), syscall(SYS_openat, AT_FDCWD, path, flags, 0));
    while (again(&opening, fd));
    return end_opening(&opening, fd);
}
EXPORT(__open_2);

static int es_tpu___open64_2(const char *path, int flags) {
    struct opening opening = begin_opening(path, flags);
    int fd;

    do
        fd = ES_NEXT(__open64_2, open_2_function, (path, flags), syscall(SYS_openat, AT_FDCWD, path, flags, 0));
    while (again(&opening, fd));
    return end_opening(&opening, fd);
}
EXPORT(__open64_2);

static int es_tpu___openat_2(int at, const char *path, int flags) {
    struct opening opening = begin_opening(path, flags);
    int fd;

    do
        fd = ES_NEXT(__openat_2, openat_2_function, (at, path, flags), syscall(SYS_openat, at, path, flags, 0));
    while (again(&opening, fd));
    return end_opening(&opening, fd);
}
EXPORT(__openat_2);

static int es_tpu___openat64_2(int at, const char *path, int flags) {
    struct opening opening = begin_opening(path, flags);
    int fd;

    do
        fd = ES_NEXT(__openat64_2, openat_2_function, (at, path, flags), syscall(SYS_openat, at, path, flags, 0));
    while (again(&opening, fd));
    return end_opening(&opening, fd);
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

/* A call that makes a descriptor another name of one, and closes what it was. */
struct copying {
    bool ours; /* of a process that has a device, where the two differ */
    bool had;  /* what was closed had the device: */
    struct es_tpu_hold was;
};

static struct copying begin_copying(int fd, int to) {
    struct copying copying = {.ours = !es_tpu_holds_none() && fd != to && es_tpu_ours()};

    copying.had = copying.ours && es_tpu_hold_closing(to, &copying.was);
    return copying;
}

/* Returns the call's result. */
static int end_copying(const struct copying *copying, int fd, int copy) {
    if (copying->ours && copy >= 0)
        es_tpu_hold_copied(fd, copy);
    if (copying->had && copy >= 0)
        es_tpu_hold_closed(&copying->was);
    else if (copying->had)
        es_tpu_hold_stays(&copying->was);
    return copy;
}

static int es_tpu_dup2(int fd, int to) {
    struct copying copying = begin_copying(fd, to);

    return end_copying(&copying, fd, ES_NEXT(dup2, dup2_function, (fd, to), syscall(SYS_dup3, fd, to, 0)));
}
EXPORT(dup2);

static int es_tpu_dup3(int fd, int to, int flags) {
    struct copying copying = begin_copying(fd, to);

    return end_copying(&copying, fd, ES_NEXT(dup3, dup3_function, (fd, to, flags), syscall(SYS_dup3, fd, to, flags)));
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
