/* Files: whose their descriptors are, and that a ghost changes none. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "machine.h"

/* As the kernel's openat. */
long file_open(int folder, const char *path, int flags, long mode) {
    long fd = proc_file(path);

    if (fd == -1) {
        if (self->ghost && ((flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0))
            return -EROFS;
        fd = raw(SYS_openat, folder, (long)path, flags, mode, 0, 0);
    }
    return own(fd);
}

#define MODE_AFTER(last)                             \
    ({                                               \
        va_list list_;                               \
        long mode_ = 0;                              \
        va_start(list_, last);                       \
        if (((last) & (O_CREAT | __O_TMPFILE)) != 0) \
            mode_ = (long)va_arg(list_, unsigned);   \
        va_end(list_);                               \
        mode_;                                       \
    })

int open(const char *path, int flags, ...) {
    const long mode = MODE_AFTER(flags);

    if (!SIMULATED())
        return (int)answer(raw(SYS_openat, AT_FDCWD, (long)path, flags, mode, 0, 0));
    return (int)answer(file_open(AT_FDCWD, path, flags, mode));
}

int openat(int folder, const char *path, int flags, ...) {
    const long mode = MODE_AFTER(flags);

    if (!SIMULATED())
        return (int)answer(raw(SYS_openat, folder, (long)path, flags, mode, 0, 0));
    return (int)answer(file_open(folder, path, flags, mode));
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));
int openat64(int folder, const char *path, int flags, ...) __attribute__((alias("openat")));

FILE *fopen(const char *path, const char *mode) {
    long fd;

    if (!SIMULATED() || (fd = proc_file(path)) == -1)
        return REAL(fopen)(path, mode);
    return answer(fd) < 0 ? NULL : fdopen((int)fd, mode);
}

FILE *fopen64(const char *path, const char *mode) __attribute__((alias("fopen")));

int memfd_create(const char *name, unsigned flags) {
    return (int)answer(own(raw(SYS_memfd_create, (long)name, flags, 0, 0, 0, 0)));
}

int eventfd(unsigned count, int flags) { return (int)answer(own(raw(SYS_eventfd2, count, flags, 0, 0, 0, 0))); }

/* After its end its numbers may be those of others. */
static bool not_its_own(int fd) { return self != NULL && self->ghost && owner_of(fd) >= 0 && !owned(fd); }

int dup(int fd) {
    if (not_its_own(fd))
        return fail(EBADF);
    return (int)answer(own(raw(SYS_dup, fd, 0, 0, 0, 0, 0)));
}

int dup2(int fd, int to) {
    if (not_its_own(fd) || not_its_own(to))
        return fail(EBADF);
    return (int)answer(own(raw(SYS_dup2, fd, to, 0, 0, 0, 0)));
}

int dup3(int fd, int to, int flags) {
    if (not_its_own(fd) || not_its_own(to))
        return fail(EBADF);
    return (int)answer(own(raw(SYS_dup3, fd, to, flags, 0, 0, 0)));
}

int pipe2(int ends[2], int flags) {
    const int result = (int)answer(raw(SYS_pipe2, (long)ends, flags, 0, 0, 0, 0));

    if (result == 0)
        (void)(own(ends[0]) + own(ends[1]));
    return result;
}

int pipe(int ends[2]) { return pipe2(ends, 0); }

int close(int fd) {
    if (!SIMULATED())
        return (int)answer(raw(SYS_close, fd, 0, 0, 0, 0, 0));
    return (int)answer(close_own(fd));
}

/* As the kernel's fcntl. */
long control(int fd, int command, void *argument) {
    long result;

    if (not_its_own(fd))
        return -EBADF;
    if (is_lock(command))
        return lock(fd, command, argument);
    result = raw(SYS_fcntl, fd, command, (long)argument, 0, 0, 0);
    return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? own(result) : result;
}

int fcntl(int fd, int command, ...) {
    va_list list;
    void *argument;

    va_start(list, command);
    argument = va_arg(list, void *);
    va_end(list);
    if (!SIMULATED())
        return (int)answer(raw(SYS_fcntl, fd, command, (long)argument, 0, 0, 0));
    return (int)answer(control(fd, command, argument));
}

int fcntl64(int fd, int command, ...) __attribute__((alias("fcntl")));

/* What is read and written of descriptors that no process opened (standard output, say) is none of ours. */
long file_read(int fd, void *bytes, size_t size) {
    if (not_its_own(fd))
        return -EBADF;
    if (owned(fd))
        point(P_IO, config.costs.io_ns);
    return raw(SYS_read, fd, (long)bytes, (long)size, 0, 0, 0);
}

long file_write(int fd, const void *bytes, size_t size) {
    long result;

    if (not_its_own(fd))
        return -EBADF;
    if (!owned(fd))
        return raw(SYS_write, fd, (long)bytes, (long)size, 0, 0, 0);
    point(P_IO, config.costs.io_ns);
    if (self->ghost)
        return -EPIPE;
    result = raw(SYS_write, fd, (long)bytes, (long)size, 0, 0, 0);
    descriptors_changed();
    point(P_IO, 0);
    return result;
}

ssize_t read(int fd, void *bytes, size_t size) {
    if (!SIMULATED())
        return answer(raw(SYS_read, fd, (long)bytes, (long)size, 0, 0, 0));
    return answer(file_read(fd, bytes, size));
}

ssize_t write(int fd, const void *bytes, size_t size) {
    if (!SIMULATED())
        return answer(raw(SYS_write, fd, (long)bytes, (long)size, 0, 0, 0));
    return answer(file_write(fd, bytes, size));
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset) {
    if (self != NULL && self->ghost)
        return fail(EROFS);
    return answer(raw(SYS_pwrite64, fd, (long)bytes, (long)size, offset, 0, 0));
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off_t offset) __attribute__((alias("pwrite")));

int eventfd_read(int fd, eventfd_t *value) { return read(fd, value, sizeof(*value)) == (ssize_t)sizeof(*value) ? 0 : -1; }

int eventfd_write(int fd, eventfd_t value) { return write(fd, &value, sizeof(value)) == (ssize_t)sizeof(value) ? 0 : -1; }

/* A ghost changes no folder either: these are all that a program that unwinds is likely to call. */
#define UNLESS_GHOST(name, parameters, number, a, b, c, d)                                 \
    int name parameters {                                                                  \
        if (self != NULL && self->ghost)                                                   \
            return fail(EROFS);                                                            \
        return (int)answer(raw(number, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)); \
    }

UNLESS_GHOST(unlink, (const char *path), SYS_unlink, path, 0, 0, 0)
UNLESS_GHOST(unlinkat, (int folder, const char *path, int flags), SYS_unlinkat, folder, path, flags, 0)
UNLESS_GHOST(rmdir, (const char *path), SYS_rmdir, path, 0, 0, 0)
UNLESS_GHOST(mkdir, (const char *path, mode_t mode), SYS_mkdir, path, mode, 0, 0)
UNLESS_GHOST(rename, (const char *from, const char *to), SYS_rename, from, to, 0, 0)
UNLESS_GHOST(renameat, (int one, const char *from, int other, const char *to), SYS_renameat, one, from, other, to)
UNLESS_GHOST(ftruncate, (int fd, off_t size), SYS_ftruncate, fd, size, 0, 0)
UNLESS_GHOST(ftruncate64, (int fd, off_t size), SYS_ftruncate, fd, size, 0, 0)
