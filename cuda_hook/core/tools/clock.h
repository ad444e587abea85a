#ifndef EDGESHARE_CORE_CLOCK_H
#define EDGESHARE_CORE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define ES_US UINT64_C(1000)
#define ES_MS UINT64_C(1000000)

/* The clock of every time that client and manager tell each other. */
static inline uint64_t es_now_ns(void) {
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

#endif
