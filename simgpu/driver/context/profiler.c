/* What a profiler would be told, and banks of shared memory, which GPUs since Maxwell have in one width only. */
#include "driver/base/driver.h"
#include "driver/base/entries.h"
#include "driver/context/banks.h"
#include "driver/context/context.h"

/* With no profiler attached, the driver does nothing of it. */
EXPORT CUresult cuProfilerInitialize(const char *configFile, const char *outputFile, int outputMode) {
    (void)configFile, (void)outputFile, (void)outputMode;
    CURRENT(context);
    (void)context;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuProfilerStart(void) {
    CURRENT(context);
    (void)context;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuProfilerStop(void) {
    CURRENT(context);
    (void)context;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetSharedMemConfig(int *pConfig) {
    CURRENT(context);
    (void)context;
    if (!pConfig)
        return CUDA_ERROR_INVALID_VALUE;
    *pConfig = BANKS_OF_4_BYTES;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetSharedMemConfig(int config) {
    CURRENT(context);
    (void)context;
    return config < BANKS_DEFAULT || config > BANKS_OF_8_BYTES ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
