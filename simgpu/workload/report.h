/* What burn has done, and how it tells. */
#ifndef SIMGPU_REPORT_H
#define SIMGPU_REPORT_H

#include <stddef.h>

#include "workload/options.h"

struct report {
    uint64_t *request_ns; /* how long each request took */
    size_t requests, requests_most;
    uint64_t launches, synchronizations, kernel_ns;
    uint64_t begin_ns, end_ns;
    uint64_t launch_ns; /* median, in timing mode */
};

/* A request that was due then is done. 0, or -1 with one line on stderr. */
int report_request(struct report *report, uint64_t due_ns);

/* One line on stdout, for people or in JSON. The bytes are the GPU's memory, free and all. */
void report_print(const struct report *report, const struct options *options, size_t free_bytes, size_t total_bytes);

#endif
