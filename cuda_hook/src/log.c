#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool alarmed;

static void write_line(int fd, const char *format, va_list arguments)
{
    char line[512];
    int length = snprintf(line, sizeof(line), "edgeshare[%d]: ", (int)getpid());

    length += vsnprintf(line + length, sizeof(line) - (size_t)length - 1, format, arguments);
    if (length > (int)sizeof(line) - 2)
        length = (int)sizeof(line) - 2;
    line[length] = '\n';
    if (write(fd, line, (size_t)length + 1) < 0)
        return; /* There is nobody to tell. */
}

/* The file is opened for each line: the program may close descriptors that it does not know, and reuse their numbers. */
static bool log_line(const char *format, va_list arguments)
{
    const char *name = getenv("EDGESHARE_HOOK_LOG");
    int fd;

    if (name == NULL || name[0] == '\0')
        return false;
    if (strcmp(name, "stderr") == 0) {
        write_line(STDERR_FILENO, format, arguments);
        return true;
    }
    fd = open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return false;
    write_line(fd, format, arguments);
    (void)close(fd);
    return true;
}

void es_log(const char *format, ...)
{
    const int error = errno;
    va_list arguments;

    va_start(arguments, format);
    (void)log_line(format, arguments);
    va_end(arguments);
    errno = error;
}

void es_alarm(const char *format, ...)
{
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
