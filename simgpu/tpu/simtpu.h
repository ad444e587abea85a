#ifndef SIMGPU_TPU_H
#define SIMGPU_TPU_H

#include <stdint.h>

/* What a program asks the simulated EdgeTPU for. Everything else is calls of the C library: open, close, ioctl. */

/* Runs one inference of this length on the device that the descriptor is of, and writes it into the machine's log. 0; or -1
 * with errno: ENODEV when the descriptor is of no simulated device, EACCES when it is of one that was not claimed. */
int simtpu_infer(int fd, uint64_t length_ns);

#endif
