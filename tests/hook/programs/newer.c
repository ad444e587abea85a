/* A driver of a time to come (a library called libcuda.so.1): it has a function that nobody knows, and a version that
 * nobody knows of one that everybody does. */
#include "driver_api.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT CUresult cuMemcpyTwiceAsync(void);
EXPORT CUresult cuLaunchKernel_v9(void);

CUresult cuMemcpyTwiceAsync(void)
{
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel_v9(void)
{
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *symbolStatus)
{
    (void)cudaVersion;
    (void)flags;
    *symbolStatus = CU_GET_PROC_ADDRESS_SUCCESS;
    /* What there is from of old, it gives by the first letter after "cu". */
    *pfn = symbol[2] == 'M' ? (void *)cuMemcpyTwiceAsync : (void *)cuLaunchKernel_v9;
    return CUDA_SUCCESS;
}
