#include "tpu/hold.h"

#include <linux/ioctl.h>
#include <linux/usbdevice_fs.h>
#include <stdio.h>

#include "base/kernel.h"
#include "tpu/next.h"
#include "tpu/tpu.h"

bool es_tpu_hold_mapped(const struct es_tpu_hold *hold) {
    char text[1024], wanted[64];
    size_t length = 0, matched = 0;
    struct stat status;
    bool found = false;
    ssize_t bytes;
    int maps;

    if (es_kernel_stat(hold->fd, &status) != 0)
        return true;
    maps = es_kernel_open("/proc/self/maps", O_RDONLY, 0);
    if (maps < 0)
        return true;
    /* A line: the addresses, the rights, the place in the file, its device, its inode. */
    length =
        (size_t)snprintf(wanted, sizeof(wanted), " %02x:%02x %lu ", (unsigned int)(status.st_dev >> 8 & 0xfff),
                         (unsigned int)((status.st_dev & 0xff) | (status.st_dev >> 12 & 0xfff00)), (unsigned long)status.st_ino);
    while (!found && (bytes = es_kernel_read(maps, text, sizeof(text))) > 0) {
        for (ssize_t i = 0; i < bytes && !found; i++) {
            if (text[i] != wanted[matched])
                matched = 0;
            if (text[i] == wanted[matched])
                found = ++matched == length;
        }
    }
    (void)es_kernel_close(maps);
    return found;
}

/* Puts another file in the place of a descriptor, which keeps its flag. */
static bool replace(int fd, int with) {
    const int flags = es_kernel_control(fd, F_GETFD, 0);

    return flags >= 0 && es_kernel_put_over(fd, with, (flags & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0) == fd;
}

bool es_tpu_hold_park(struct es_tpu_hold *hold) {
    bool done = true;
    int nothing;

    if (hold->node < 0) {
        for (unsigned int i = 0; i < 32; i++) {
            if ((hold->interfaces >> i & 1) != 0)
                done &= es_next_ioctl(hold->fd, USBDEVFS_RELEASEINTERFACE, &i) >= 0;
        }
        return done;
    }
    nothing = es_kernel_open("/dev/null", O_RDWR, 0);
    done = nothing >= 0 && replace(hold->fd, nothing);
    if (nothing >= 0)
        (void)es_kernel_close(nothing);
    return done;
}

int es_tpu_hold_unpark(struct es_tpu_hold *hold, uint64_t *end_ns) {
    int result;
    bool done;

    if (hold->node < 0) {
        for (unsigned int i = 0; i < 32; i++) {
            if ((hold->interfaces >> i & 1) == 0)
                continue;
            do
                result = es_next_ioctl(hold->fd, USBDEVFS_CLAIMINTERFACE, &i);
            while (es_tpu_busy(result, end_ns));
            if (result < 0)
                return -1;
        }
        return 0;
    }
    do
        result = es_next_open(es_tpu_path(hold->node), (hold->flags & ~(O_CREAT | O_EXCL | O_TRUNC)) | O_CLOEXEC, 0);
    while (es_tpu_busy(result, end_ns));
    if (result < 0)
        return -1;
    done = replace(hold->fd, result);
    (void)es_kernel_close(result);
    return done ? 1 : -1;
}
