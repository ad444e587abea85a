/* A program that infers on an EdgeTPU: what the tests share one between. Prints how many inferences it has done. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/usbdevice_fs.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "edgeshare_slice.h"
#include "tpu/simtpu.h"

struct burn {
    const char *device;
    uint64_t infer_ns, think_ns, seconds;
    long per_open; /* inferences before the device is closed; 0: it never is */
    bool slices;   /* a slice around each inference */
    int fd;
    unsigned long done, lost;
};

static volatile sig_atomic_t ended;

static void end(int number) {
    (void)number;
    ended = 1;
}

static uint64_t now_ns(void) {
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int fail(const struct burn *burn, const char *what) {
    fprintf(stderr, "tpuburn: %s %s: %s\n", what, burn->device, strerror(errno));
    return -1;
}

static int open_device(struct burn *burn) {
    unsigned int interface = 0;

    burn->fd = open(burn->device, O_RDWR | O_CLOEXEC);
    if (burn->fd < 0)
        return fail(burn, "open");
    if (strstr(burn->device, "/usb/") != NULL && ioctl(burn->fd, USBDEVFS_CLAIMINTERFACE, &interface) != 0)
        return fail(burn, "claim an interface of");
    return 0;
}

static int infer(struct burn *burn) {
    int fresh = 0;

    if (burn->slices && (fresh = edgeshare_slice_begin()) < 0)
        return fail(burn, "a slice of");
    burn->lost += fresh > 0;
    if (simtpu_infer(burn->fd, burn->infer_ns) != 0)
        return fail(burn, "infer on");
    burn->done++;
    if (burn->slices)
        (void)edgeshare_slice_end();
    return 0;
}

/* Without the device, unless it is never closed. */
static void think(const struct burn *burn) {
    const struct timespec length = {(time_t)(burn->think_ns / 1000000000u), (long)(burn->think_ns % 1000000000u)};

    if (burn->think_ns > 0)
        (void)nanosleep(&length, NULL);
}

static int run(struct burn *burn) {
    const uint64_t until_ns = now_ns() + burn->seconds * 1000000000u;

    while (!ended && now_ns() < until_ns) {
        if (open_device(burn) != 0)
            return -1;
        for (long i = 0; !ended && now_ns() < until_ns && (burn->per_open == 0 || i < burn->per_open); i++) {
            if (infer(burn) != 0)
                return -1;
            if (burn->per_open == 0)
                think(burn);
        }
        if (close(burn->fd) != 0)
            return fail(burn, "close");
        think(burn);
    }
    return 0;
}

int main(int argc, char **argv) {
    static const struct option OPTIONS[] = {
        {"device", required_argument, NULL, 'd'},
        {"infer-us", required_argument, NULL, 'i'},
        {"think-us", required_argument, NULL, 't'},
        {"seconds", required_argument, NULL, 's'},
        {"per-open", required_argument, NULL, 'p'},
        {"slices", no_argument, NULL, 'S'},
        {NULL, 0, NULL, 0},
    };
    struct burn burn = {.device = "/dev/apex_0", .infer_ns = 10000000, .seconds = 10, .per_open = 1};
    int option, result;

    while ((option = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1) {
        switch (option) {
        case 'd': burn.device = optarg; break;
        case 'i': burn.infer_ns = strtoull(optarg, NULL, 10) * 1000; break;
        case 't': burn.think_ns = strtoull(optarg, NULL, 10) * 1000; break;
        case 's': burn.seconds = strtoull(optarg, NULL, 10); break;
        case 'p': burn.per_open = strtol(optarg, NULL, 10); break;
        case 'S': burn.slices = true; break;
        default: return 2;
        }
    }
    (void)signal(SIGTERM, end);
    result = run(&burn);
    printf("{\"inferences\": %lu, \"fresh\": %lu}\n", burn.done, burn.lost);
    return result == 0 ? 0 : 1;
}
