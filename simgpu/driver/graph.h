/* Stream capture and graphs, as launches and copies meet them. */
#ifndef SIMGPU_GRAPH_H
#define SIMGPU_GRAPH_H

#include "driver/driver.h"

struct launch_shape {
    unsigned int grid[3];
    unsigned int block[3];
    unsigned int shared_bytes;
};

/* Checks a launch and says how long it takes. */
CUresult launch_duration(struct CUfunc_st *function, const struct launch_shape *shape, void **params, void **extra,
                         uint32_t multiprocessors, uint64_t *duration_ns);

/* Adds work to the graph that the stream is captured into. */
CUresult capture_work(struct CUstream_st *stream, uint32_t kind, uint64_t duration_ns, struct CUfunc_st *function);

#endif
