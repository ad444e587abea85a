/* What a context can be asked and told. */
#include "driver/base/driver.h"
#include "driver/context/context.h"

EXPORT CUresult cuCtxGetDevice(CUdevice *device) {
    CURRENT(context);
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = context->device;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx) {
    CHECK_DRIVER();
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = check_context(ctx, __func__);
    if (result == CUDA_SUCCESS)
        *device = ctx->device;
    return result;
}

EXPORT CUresult cuCtxGetFlags(unsigned int *flags) {
    CURRENT(context);
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = context->flags;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetFlags(unsigned int flags) {
    CURRENT(context);
    if (flags & ~(unsigned int)CU_CTX_FLAGS_MASK)
        return CUDA_ERROR_INVALID_VALUE;
    context->flags = flags;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetId(CUcontext ctx, unsigned long long *ctxId) {
    CHECK_DRIVER();
    if (!ctxId)
        return CUDA_ERROR_INVALID_VALUE;
    struct CUctx_st *context = ctx;
    CUresult result = ctx ? check_context(ctx, __func__) : current_context(&context, __func__);
    if (result == CUDA_SUCCESS)
        *ctxId = context->id;
    return result;
}

EXPORT CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version) {
    CHECK_DRIVER();
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    struct CUctx_st *context = ctx;
    CUresult result = ctx ? check_context(ctx, __func__) : current_context(&context, __func__);
    if (result == CUDA_SUCCESS)
        *version = context->api_version;
    return result;
}

/* The heap of a kernel's malloc is device memory; what a bare context has of it is part of that. */
EXPORT CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
    CURRENT(context);
    if ((unsigned int)limit >= LIMITS)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    size_t before = context->limits[limit];
    bool heap = limit == CU_LIMIT_MALLOC_HEAP_SIZE;
    if (heap && value > before && !machine_take_memory(&driver.machine, context->gpu, context->index, value - before))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (heap && value < before)
        machine_give_memory(&driver.machine, context->gpu, context->index, before - value);
    context->limits[limit] = value;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetLimit(size_t *pvalue, CUlimit limit) {
    CURRENT(context);
    if (!pvalue)
        return CUDA_ERROR_INVALID_VALUE;
    if ((unsigned int)limit >= LIMITS)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *pvalue = context->limits[limit];
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetCacheConfig(CUfunc_cache *pconfig) {
    CURRENT(context);
    if (!pconfig)
        return CUDA_ERROR_INVALID_VALUE;
    *pconfig = context->cache;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
    CURRENT(context);
    if ((unsigned int)config > CU_FUNC_CACHE_PREFER_EQUAL)
        return CUDA_ERROR_INVALID_VALUE;
    context->cache = config;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority) {
    CURRENT(context);
    (void)context;
    if (leastPriority)
        *leastPriority = 0;
    /* As on GPUs since Ampere. */
    if (greatestPriority)
        *greatestPriority = -5;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxResetPersistingL2Cache(void) {
    CURRENT(context);
    (void)context;
    return CUDA_SUCCESS;
}
