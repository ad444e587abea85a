#include "workload/report.h"

#include <stdio.h>
#include <stdlib.h>

#include "workload/times.h"

int report_request(struct report *report, uint64_t due_ns) {
    if (report->requests == report->requests_most) {
        size_t most = report->requests_most ? 2 * report->requests_most : 1024;
        uint64_t *longer = realloc(report->request_ns, most * sizeof *longer);
        if (!longer) {
            fprintf(stderr, "burn: no memory for the times of %zu requests\n", most);
            return -1;
        }
        report->request_ns = longer;
        report->requests_most = most;
    }
    report->request_ns[report->requests++] = now_ns() - due_ns;
    return 0;
}

void report_print(const struct report *report, const struct options *options, size_t free_bytes, size_t total_bytes) {
    double wall = (double)(report->end_ns - report->begin_ns) / 1e9;
    if (!options->json) {
        printf("%llu kernels, %.3f s of GPU time asked for, in %.3f s", (unsigned long long)report->launches,
               (double)report->kernel_ns / 1e9, wall);
        if (options->launches)
            printf("; median launch %.1f ns", (double)report->launch_ns / 1000);
        printf("\n");
        return;
    }
    printf("{\"launches\": %llu, \"kernel_ns\": %llu, \"synchronizations\": %llu, \"begin_ns\": %llu, \"end_ns\": %llu, "
           "\"wall_seconds\": %.6f, \"memory_free_bytes\": %zu, \"memory_total_bytes\": %zu",
           (unsigned long long)report->launches, (unsigned long long)report->kernel_ns,
           (unsigned long long)report->synchronizations, (unsigned long long)report->begin_ns, (unsigned long long)report->end_ns,
           wall, free_bytes, total_bytes);
    if (options->launches)
        printf(", \"median_launch_ns\": %.1f", (double)report->launch_ns / 1000);
    if (options->mode == MODE_REQUEST) {
        printf(", \"request_ns\": [");
        for (size_t index = 0; index < report->requests; index++)
            printf("%s%llu", index ? ", " : "", (unsigned long long)report->request_ns[index]);
        printf("]");
    }
    printf("}\n");
}
