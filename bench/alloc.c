/* Times one allocation and its free:  alloc PAIRS BYTES  prints the mean of all pairs in ns. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "driver_api.h"

#define CHECK(call)                                             \
    do {                                                        \
        CUresult result = (call);                               \
        if (result != CUDA_SUCCESS) {                           \
            fprintf(stderr, "alloc: %s: CUDA error %d\n", #call, (int)result); \
            return 1;                                           \
        }                                                       \
    } while (0)

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int main(int count, char **words) {
    if (count != 3) {
        fprintf(stderr, "usage: alloc PAIRS BYTES\n");
        return 2;
    }
    long pairs = atol(words[1]);
    size_t bytes = strtoull(words[2], NULL, 10);
    CUdevice device;
    CUcontext context;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    uint64_t begin_ns = 0;
    /* The first tenth warms up: the first call of a kind looks symbols up. */
    for (long i = -pairs / 10; i < pairs; i++) {
        CUdeviceptr memory;
        if (i == 0)
            begin_ns = now_ns();
        CHECK(cuMemAlloc_v2(&memory, bytes));
        CHECK(cuMemFree_v2(memory));
    }
    printf("%.1f\n", (double)(now_ns() - begin_ns) / (double)pairs);
    return 0;
}
