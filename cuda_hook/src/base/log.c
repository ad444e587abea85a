#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/kernel.h"
#include "base/settings.h"

static bool alarmed;

/* Can something be written there now, and is it a place for messages? A pipe that nobody empties would hold the program up;
 * and a file that was opened for reading, too, is a program's data: it closed its stderr, and reused the number. */
static bool takes_lines(int fd) {
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    struct timespec at_once = {0, 0};
    struct stat status;

    if (es_kernel_stat(fd, &status) != 0)
        return false;
    if (S_ISREG(status.st_mode))
        return (es_kernel_control(fd, F_GETFL, 0) & O_ACCMODE) == O_WRONLY;
    return es_kernel_poll(&wait, &at_once) == 1 && (wait.revents & POLLOUT) != 0;
}

/* Writes as if it could not fail: a reader that is gone, a file at its limit and a terminal that another job has all end
 * or stop a program by a signal. */
static void write_quietly(int fd, const char *line, size_t bytes) {
    const struct timespec at_once = {0, 0};
    sigset_t quiet, before, waited;

    (void)sigemptyset(&quiet);
    (void)sigaddset(&quiet, SIGPIPE);
    (void)sigaddset(&quiet, SIGXFSZ);
    (void)sigaddset(&quiet, SIGTTOU);
    (void)sigpending(&waited);
    (void)sigprocmask(SIG_BLOCK, &quiet, &before);
    if (es_kernel_write(fd, line, bytes) < 0 && (errno == EPIPE || errno == EFBIG)) {
        /* What was pending before is the program's own. */
        if (sigismember(&waited, SIGPIPE) == 1)
            (void)sigdelset(&quiet, SIGPIPE);
        if (sigismember(&waited, SIGXFSZ) == 1)
            (void)sigdelset(&quiet, SIGXFSZ);
        (void)sigdelset(&quiet, SIGTTOU);
        (void)syscall(SYS_rt_sigtimedwait, &quiet, NULL, &at_once, _NSIG / 8);
    }
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
}

static void write_line(int fd, const char *format, va_list arguments) {
    char line[512];
    int length = snprintf(line, sizeof(line), "edgeshare[%d]: ", (int)getpid());

    length += vsnprintf(line + length, sizeof(line) - (size_t)length - 1, format, arguments);
    if (length > (int)sizeof(line) - 2)
        length = (int)sizeof(line) - 2;
    line[length] = '\n';
    if (takes_lines(fd))
        write_quietly(fd, line, (size_t)length + 1);
}

/* The file is opened for each line: the program may close descriptors that it does not know, and reuse their numbers. */
static bool log_line(const char *format, va_list arguments) {
    const char *name = es_setting_log();
    int fd;

    if (name[0] == '\0')
        return false;
    if (strcmp(name, "stderr") == 0) {
        write_line(STDERR_FILENO, format, arguments);
        return true;
    }
    fd = es_kernel_open(name, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK, 0644);
    if (fd < 0)
        return false;
    write_line(fd, format, arguments);
    (void)es_kernel_close(fd);
    return true;
}

void es_log(const char *format, ...) {
    const int error = errno;
    va_list arguments;

    va_start(arguments, format);
    (void)log_line(format, arguments);
    va_end(arguments);
    errno = error;
}

void es_alarm(const char *format, ...) {
    const int error = errno;
    va_list arguments;
    bool logged;

    va_start(arguments, format);
    logged = log_line(format, arguments);
    va_end(arguments);
    if (!logged && !__atomic_exchange_n(&alarmed, true, __ATOMIC_RELAXED)) {
        va_start(arguments, format);
        write_line(STDERR_FILENO, format, arguments);
        va_end(arguments);
    }
    errno = error;
}
