#include "odd.h"

void pools(void) {
    CUstream stream[2];
    CUmemoryPool pool;
    size_t before, after, total;

    start();
    stream[0] = make_stream(CU_STREAM_NON_BLOCKING);
    stream[1] = make_stream(CU_STREAM_NON_BLOCKING);
    MUST(cuMemGetInfo_v2(&before, &total));
    for (int round = 0; round < 300; round++) {
        CUdeviceptr memory;

        MUST(cuMemAllocAsync(&memory, (size_t)(round % 7 + 1) << 20, stream[round % 2]));
        MUST(cuMemsetD8Async(memory, 1, 4096, stream[round % 2]));
        MUST(cuMemFreeAsync(memory, stream[round % 2]));
    }
    SAY(cuCtxSynchronize());
    MUST(cuDeviceGetDefaultMemPool(&pool, 0));
    SAY(cuMemPoolTrimTo(pool, 0));
    MUST(cuMemGetInfo_v2(&after, &total));
    /* What a process that ended before has had may come back meanwhile. */
    printf("all back: %d\n", before <= after);
}

/* A process that only looks. */
void queries(void) {
    char name[64];
    size_t free_bytes, total, again;

    MUST(cuInit(0));
    MUST(cuDeviceGetName(name, sizeof name, 0));
    MUST(cuDeviceTotalMem_v2(&total, 0));
    start();
    MUST(cuMemGetInfo_v2(&free_bytes, &again));
    printf("%s, agree: %d\n", name, total == again && free_bytes <= total);
}
