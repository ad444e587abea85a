#ifndef EDGESHARE_HOLD_H
#define EDGESHARE_HOLD_H

#include <stdbool.h>
#include <stdint.h>

/* A descriptor by which this process has its EdgeTPU, and how it is given up for a while without being closed. */
struct es_tpu_hold {
    int fd;
    int node;            /* that was opened (es_tpu_path); -1: a device on the USB, which is claimed */
    int flags;           /* that it was opened with */
    uint32_t interfaces; /* that are claimed, a bit each */
    bool parked;         /* given up for a while, with the slice (es_tpu_park) */
};

/* Is something of the file that the descriptor is of mapped? Then closing it would not close the file. */
bool es_tpu_hold_mapped(const struct es_tpu_hold *hold);

/* Gives the device up; false where that is not to be had. */
bool es_tpu_hold_park(struct es_tpu_hold *hold);

/* Takes it back: 1 when the driver has forgotten what was done by the descriptor, 0 when not, -1 with errno when it cannot be
 * had. *end_ns as es_tpu_busy has it. */
int es_tpu_hold_unpark(struct es_tpu_hold *hold, uint64_t *end_ns);

#endif
