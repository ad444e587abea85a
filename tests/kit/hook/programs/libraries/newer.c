/* A driver of a time to come (a library called libcuda.so.1): it has a function that nobody knows, and a version that
 * nobody knows of one that everybody does. And it looks its own functions up, as drivers do. */
#include <dlfcn.h>

#include "driver_api.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT CUresult cuMemcpyTwiceAsync(void);
EXPORT CUresult cuLaunchKernel_v9(void);

CUresult cuMemcpyTwiceAsync(void) { return CUDA_SUCCESS; }

CUresult cuLaunchKernel_v9(void) { return CUDA_SUCCESS; }

EXPORT CUresult cuInit(unsigned int Flags) {
    (void)Flags;
    return CUDA_SUCCESS;
}

/* "own" when the driver finds its own function through this door, else "not own". */
EXPORT const char *newer_finds(const char *door);

const char *newer_finds(const char *door) {
    void *handle = RTLD_DEFAULT;
    Dl_info found = {0}, own = {0};

    if (door[0] == 'h')
        handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    (void)dladdr(dlsym(handle, "cuInit"), &found);
    (void)dladdr((void *)newer_finds, &own);
    return found.dli_fbase == own.dli_fbase ? "own" : "not own";
}

EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *symbolStatus) {
    (void)cudaVersion;
    (void)flags;
    *symbolStatus = CU_GET_PROC_ADDRESS_SUCCESS;
    /* What there is from of old, it gives by the first letter after "cu". */
    *pfn = symbol[2] == 'M' ? (void *)cuMemcpyTwiceAsync : (void *)cuLaunchKernel_v9;
    return CUDA_SUCCESS;
}
