/* A CUDA program as its author would write it: NVIDIA's own header, and nothing of this project's but a kernel. Linked to
 * libcuda, or with OPENED finding the driver by dlopen and dlsym.
 *
 *   plain work         a little of everything; what it prints depends on nothing but the driver
 *   plain fill MIB     takes blocks of so many MiB until the driver refuses
 *   plain spin SECONDS keeps the GPU busy */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "workload/spin.h"

#ifdef OPENED
#define NAME_OF(name) #name
#define SYMBOL(name) NAME_OF(name)
static void *library;
/* The header's macros say which version of a function is meant: cuMemAlloc is cuMemAlloc_v2. */
#define CALL(name, ...) ((__typeof__(&name))dlsym(library, SYMBOL(name)))(__VA_ARGS__)
#else
#define CALL(name, ...) name(__VA_ARGS__)
#endif

#define MUST(name, ...)                                           \
    do {                                                          \
        CUresult result = CALL(name, __VA_ARGS__);                \
        if (result != CUDA_SUCCESS) {                             \
            fprintf(stderr, #name " answered %d\n", (int)result); \
            exit(1);                                              \
        }                                                         \
    } while (0)

static CUfunction spin;

static void start(void) {
    CUcontext context;
    CUdevice device;
    CUmodule module;

    MUST(cuInit, 0);
    MUST(cuDeviceGet, &device, 0);
    MUST(cuDevicePrimaryCtxRetain, &context, device);
    MUST(cuCtxSetCurrent, context);
    MUST(cuModuleLoadData, &module, SPIN_PTX);
    MUST(cuModuleGetFunction, &spin, module, "spin");
}

static void launch(unsigned long long ns, CUstream stream) {
    void *parameters[] = {&ns};

    MUST(cuLaunchKernel, spin, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL);
}

static int work(void) {
    char name[64], in[4096], out[4096];
    int version;
    float ms;
    CUstream stream;
    CUevent begin, end;
    CUdeviceptr memory;
    CUdevice device;
    CUdeviceptr none;

    start();
    MUST(cuDriverGetVersion, &version);
    MUST(cuCtxGetDevice, &device);
    MUST(cuDeviceGetName, name, sizeof name, device);
    printf("%s, CUDA %d\n", name, version);
    MUST(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    MUST(cuEventCreate, &begin, CU_EVENT_DEFAULT);
    MUST(cuEventCreate, &end, CU_EVENT_DEFAULT);
    MUST(cuMemAlloc, &memory, sizeof in);
    memset(in, 'x', sizeof in);
    MUST(cuMemcpyHtoDAsync, memory, in, sizeof in, stream);
    MUST(cuEventRecord, begin, stream);
    for (int number = 0; number < 10; number++)
        launch(500000, stream);
    MUST(cuEventRecord, end, stream);
    MUST(cuMemcpyDtoHAsync, out, memory, sizeof out, stream);
    MUST(cuStreamSynchronize, stream);
    MUST(cuEventElapsedTime, &ms, begin, end);
    printf("copied: %d, at least as long as the kernels: %d\n", memcmp(in, out, sizeof in) == 0, ms >= 5);
    printf("too much: %d\n", (int)CALL(cuMemAlloc, &none, (size_t)1 << 50));
    MUST(cuMemFree, memory);
    printf("freed twice: %d\n", (int)CALL(cuMemFree, memory));
    MUST(cuEventDestroy, begin);
    MUST(cuEventDestroy, end);
    MUST(cuStreamDestroy, stream);
    MUST(cuDevicePrimaryCtxRelease, device);
    return 7;
}

static int fill(size_t mib) {
    size_t free_bytes, total_bytes, of_device, taken = 0;
    CUdeviceptr memory;
    CUresult result;

    start();
    MUST(cuDeviceTotalMem, &of_device, 0);
    while ((result = CALL(cuMemAlloc, &memory, mib << 20)) == CUDA_SUCCESS)
        taken += mib;
    MUST(cuMemGetInfo, &free_bytes, &total_bytes);
    printf("%d %zu %zu %zu %zu\n", (int)result, taken, free_bytes >> 20, total_bytes >> 20, of_device >> 20);
    return 0;
}

static int keep_busy(time_t seconds) {
    struct timespec now;
    time_t end;

    start();
    clock_gettime(CLOCK_MONOTONIC, &now);
    for (end = now.tv_sec + seconds; now.tv_sec < end; clock_gettime(CLOCK_MONOTONIC, &now))
        launch(1000000, NULL);
    MUST(cuCtxSynchronize);
    return 0;
}

int main(int argc, char **argv) {
#ifdef OPENED
    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
#endif
    if (argc == 2 && strcmp(argv[1], "work") == 0)
        return work();
    if (argc == 3 && strcmp(argv[1], "fill") == 0)
        return fill(strtoul(argv[2], NULL, 10));
    if (argc == 3 && strcmp(argv[1], "spin") == 0)
        return keep_busy(atoi(argv[2]));
    return 64;
}
