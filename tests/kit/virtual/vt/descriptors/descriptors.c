/* Whose each descriptor is. One table of the real process holds those of all simulated ones. */
#include <sys/syscall.h>

#include "machine.h"

static int16_t owners[DESCRIPTORS]; /* a process, plus 1; 0: what was open before, and this library's own */
static int highest = -1;

long own(long fd) {
    if (fd < 0)
        return fd;
    if (fd >= DESCRIPTORS)
        die(VT_IMPOSSIBLE, "more descriptors than there is room for");
    if (self != NULL)
        owners[fd] = (int16_t)(self->process + 1);
    if (fd > highest)
        highest = (int)fd;
    return fd;
}

int owner_of(int fd) { return fd < 0 || fd >= DESCRIPTORS ? -1 : owners[fd] - 1; }

bool owned(int fd) { return self != NULL && owner_of(fd) == self->process; }

/* Another process's descriptor is none here, as a number that is closed twice would be. */
long close_own(int fd) {
    const int owner = owner_of(fd);
    long result;

    point(P_IO, config.costs.io_ns);
    if (self->ghost)
        return 0;
    if (owner >= 0 && owner != self->process)
        return -EBADF;
    locks_closed(fd);
    timer_closed(fd);
    if (owner >= 0)
        owners[fd] = 0;
    result = raw(SYS_close, fd, 0, 0, 0, 0, 0);
    listeners_changed();
    descriptors_changed();
    return result;
}

void descriptors_end(int process) {
    for (int fd = 0; fd <= highest; fd++) {
        if (owners[fd] != process + 1)
            continue;
        timer_closed(fd);
        (void)raw(SYS_close, fd, 0, 0, 0, 0, 0);
        owners[fd] = 0;
    }
    listeners_changed();
}
