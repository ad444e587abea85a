#ifndef EDGESHARE_KERNEL_H
#define EDGESHARE_KERNEL_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Descriptors by the kernel's own calls. The C library's functions of these names are points where a thread can be
 * cancelled, which would leave the hook's locks taken; and programs and other preloaded libraries put their own in front
 * of them. As theirs, these return -1 and set errno. Names and structures are those that x86-64 and aarch64 share. */

static inline int es_kernel_open(const char *path, int flags, mode_t mode) {
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC | O_NOCTTY, mode);
}

static inline int es_kernel_close(int fd) { return (int)syscall(SYS_close, fd); }

static inline ssize_t es_kernel_read(int fd, void *bytes, size_t size) { return syscall(SYS_read, fd, bytes, size); }

static inline ssize_t es_kernel_write(int fd, const void *bytes, size_t size) { return syscall(SYS_write, fd, bytes, size); }

/* Is there something by this name? */
static inline int es_kernel_access(const char *path) { return (int)syscall(SYS_faccessat, AT_FDCWD, path, F_OK); }

static inline bool es_kernel_found_none(void) { return errno == ENOENT || errno == ENOTDIR || errno == EACCES; }

/* Is there surely nothing by this name, for this process? A sandbox that refuses the question may let it be opened. */
static inline bool es_kernel_absent(const char *path) {
    int fd;

    if (es_kernel_access(path) == 0)
        return false;
    if (errno == ENOENT || errno == ENOTDIR)
        return true;
    fd = es_kernel_open(path, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0)
        return es_kernel_found_none();
    (void)es_kernel_close(fd);
    return false;
}

/* The C library's fstat is young as a symbol (glibc 2.33). */
static inline int es_kernel_stat(int fd, struct stat *status) { return (int)syscall(SYS_fstat, fd, status); }

static inline int es_kernel_control(int fd, int command, long argument) { return (int)syscall(SYS_fcntl, fd, command, argument); }

/* The kernel keeps in *timeout what is left of it. */
static inline int es_kernel_poll(struct pollfd *wait, struct timespec *timeout) {
    return (int)syscall(SYS_ppoll, wait, 1, timeout, NULL, 0);
}

static inline int es_kernel_socket(int domain, int type) { return (int)syscall(SYS_socket, domain, type, 0); }

static inline int es_kernel_connect(int fd, const void *address, size_t size) {
    return (int)syscall(SYS_connect, fd, address, size);
}

static inline ssize_t es_kernel_send(int fd, const void *bytes, size_t size, int flags) {
    return syscall(SYS_sendto, fd, bytes, size, flags, NULL, 0);
}

/* Ends a connection for all who have the socket, forked children among them. */
static inline int es_kernel_shutdown(int fd) { return (int)syscall(SYS_shutdown, fd, SHUT_RDWR); }

static inline ssize_t es_kernel_receive(int fd, struct msghdr *message, int flags) {
    return syscall(SYS_recvmsg, fd, message, flags);
}

/* Puts a file's first bytes in the place of what is mapped there, which others may read meanwhile: they find the one or the
 * other. A sanitizer that saw the mapping made would call that a race. The offset has its type spelt out: on x86-64 it is
 * passed on the stack, where an int would leave the upper half to chance. */
static inline int es_kernel_replace(void *place, size_t size, int protection, int fd) {
    return syscall(SYS_mmap, place, size, protection, MAP_SHARED | MAP_FIXED, fd, (off_t)0) == -1 ? -1 : 0;
}

/* A page that is zero, and is so again in a forked child, whatever was written into it (Linux 4.14); NULL where the kernel has
 * none. */
static inline void *es_kernel_page_wiped_by_fork(size_t size) {
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        return NULL;
    if (madvise(page, size, MADV_WIPEONFORK) != 0) {
        (void)munmap(page, size);
        return NULL;
    }
    return page;
}

/* Puts another file in the place of a descriptor. */
static inline int es_kernel_put_over(int fd, int with, int flags) { return (int)syscall(SYS_dup3, with, fd, flags); }

/* Where a symbolic link leads, without a zero at its end. */
static inline ssize_t es_kernel_link(const char *link, char *path, size_t size) {
    return syscall(SYS_readlinkat, AT_FDCWD, link, path, size);
}

static inline pid_t es_kernel_process(void) { return getpid(); }

static inline pid_t es_kernel_thread(void) { return (pid_t)syscall(SYS_gettid); }

/* Is this thread of this process no more? */
static inline bool es_kernel_thread_ended(pid_t thread) {
    return syscall(SYS_tgkill, getpid(), thread, 0) != 0 && errno == ESRCH;
}

static inline void es_kernel_name_thread(const char *name) { (void)prctl(PR_SET_NAME, name, 0, 0, 0); }

/* Has the calling thread woken at the end of a sleep, and not some fifty microseconds later. */
static inline void es_kernel_sleep_exactly(void) { (void)prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0); }

#endif
