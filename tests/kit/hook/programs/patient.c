/* To be preloaded beside the hook: whoever waits for a manager's answer has all the time that it takes, however late a
 * busy machine has the manager come to it, unless the test says that the manager stands still, by a file whose path is in
 * EDGESHARE_TEST_STANDS. Then the hook's own time counts. */
#include <dlfcn.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ARGUMENTS = 6, TIMEOUT = 2 };

/* Who looks for no longer than this comes again, and takes no manager that says nothing for hung. */
enum { LOOK_NS = 10 * 1000 * 1000 };

static long (*next)(long, ...);

__attribute__((constructor)) static void find_next(void) {
    void *const function = dlsym(RTLD_NEXT, "syscall");

    memcpy(&next, &function, sizeof(next));
}

static int stands(void) {
    const char *path = getenv("EDGESHARE_TEST_STANDS");

    return path != NULL && access(path, F_OK) == 0;
}

long syscall(long number, ...) {
    long given[ARGUMENTS];
    va_list list;

    va_start(list, number);
    for (int i = 0; i < ARGUMENTS; i++)
        given[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_ppoll && given[TIMEOUT] != 0) {
        const struct timespec *left = (const struct timespec *)given[TIMEOUT];

        if ((left->tv_sec > 0 || left->tv_nsec > LOOK_NS) && !stands())
            given[TIMEOUT] = 0;
    }
    return next(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}
