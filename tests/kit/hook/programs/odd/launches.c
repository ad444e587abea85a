#include "odd.h"

void cooperative(void) {
    unsigned long long ns = 100 * US;
    void *parameters[] = {&ns};

    start();
    for (int number = 0; number < 100; number++)
        MUST(cuLaunchCooperativeKernel(spin, 4, 1, 1, 32, 1, 1, 0, NULL, parameters));
    SAY(cuLaunchCooperativeKernel(spin, 1000000, 1, 1, 1024, 1, 1, 0, NULL, parameters));
    SAY(cuCtxSynchronize());
}

void long_kernel(void) {
    start();
    MUST(launch(spin, 2000ull * MS, NULL));
    SAY(cuStreamQuery(NULL));
    MUST(launch(spin, MS, NULL));
    SAY(cuCtxSynchronize());
    SAY(cuStreamQuery(NULL));
}

/* Far more than the driver takes before it blocks. */
void deep_queue(void) {
    start();
    for (int number = 0; number < 5000; number++)
        MUST(launch(spin, 20 * US, NULL));
    SAY(cuCtxSynchronize());
}

/* Ends with work in the queue. */
void left_behind(void) {
    start();
    MUST(launch(spin, MS, NULL));
    MUST(cuCtxSynchronize());
    for (int number = 0; number < 200; number++)
        MUST(launch(spin, MS, NULL));
    printf("left\n");
}

void wrong_arguments(void) {
    CUdeviceptr memory;
    size_t size;
    unsigned long long ns = US;
    void *parameters[] = {&ns};

    SAY(cuMemAlloc_v2(&memory, 16));
    SAY(cuCtxSynchronize());
    MUST(cuInit(0));
    SAY(cuMemAlloc_v2(&memory, 16));
    SAY(cuMemGetInfo_v2(&size, &size));
    SAY(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    SAY(cuDeviceTotalMem_v2(&size, 99));
    SAY(cuDeviceTotalMem_v2(NULL, 0));
    start();
    SAY(cuMemAlloc_v2(&memory, 0));
    SAY(cuMemAlloc_v2(NULL, 16));
    SAY(cuMemFree_v2(0));
    SAY(cuMemFree_v2(12345));
    SAY(cuMemGetInfo_v2(NULL, NULL));
    SAY(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    SAY(cuLaunchKernel(spin, 0, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    SAY(cuLaunchKernel(spin, 1, 1, 1, 2048, 1, 1, 0, NULL, parameters, NULL));
    SAY(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    SAY(cuMemcpyHtoD_v2(64, &ns, 8));
    SAY(cuGraphLaunch(NULL, NULL));
    SAY(cuStreamSynchronize(NULL));
    MUST(cuMemAlloc_v2(&memory, 16));
    SAY(cuMemFree_v2(memory));
    SAY(cuMemFree_v2(memory));
    MUST(cuCtxSetCurrent(NULL));
    SAY(cuCtxSynchronize());
    SAY(launch(spin, US, NULL));
    SAY(cuMemAlloc_v2(&memory, 16));
}
