/* A launch: what it takes of a GPU, and how it is made. */
#ifndef SIMGPU_LAUNCH_H
#define SIMGPU_LAUNCH_H

#include <stdint.h>

#include "driver_api.h"

struct launch_shape {
    unsigned int grid[3];
    unsigned int block[3];
    unsigned int shared_bytes;
};

/* Checks a launch and says how long it takes. */
CUresult launch_duration(struct CUfunc_st *function, const struct launch_shape *shape, void **params, void **extra,
                         uint32_t multiprocessors, uint64_t *duration_ns);

/* What it takes of a GPU whose engines overlap. */
uint32_t launch_place(const struct launch_shape *shape);

/* Launches, or adds a node to what the stream captures. */
CUresult launch_kernel(CUfunction handle, const struct launch_shape *shape, CUstream hStream, void **params, void **extra);

#endif
