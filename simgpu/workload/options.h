/* What burn is asked to do. */
#ifndef SIMGPU_OPTIONS_H
#define SIMGPU_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum mode { MODE_ASYNC, MODE_SYNC, MODE_THINK, MODE_REQUEST };

enum { KERNELS = 8, STREAMS = 64, GRAPH_KERNELS = 1000 };

struct options {
    double seconds;
    int kernels;
    uint64_t kernel_ns[KERNELS];
    unsigned int weight[KERNELS];
    enum mode mode;
    uint64_t think_ns;
    uint64_t period_ns;
    uint64_t requests; /* in mode request: so many, and then the end; 0: until the time is over */
    uint64_t alloc_bytes;
    int streams;
    int device;
    bool told;                    /* when to start, once it is ready */
    double idle_from, idle_until; /* seconds after the start: submits nothing */
    const char *door;
    uint64_t launches;   /* timing mode, 0: none */
    uint64_t sync_every; /* 0: never in mode async, else each */
    int graph;           /* kernels of the graph that stands for a kernel; 0: none */
    unsigned int grid;
    bool json;
};

/* Reads the command line. 0; or the exit status, with one line on stderr or the help on stdout. `done` is set where
 * there is nothing left to do. */
int read_options(int argc, char **argv, struct options *options, bool *done);

#endif
