/* Contexts: primary and created, and each thread's stack of current ones. */
#include <stdlib.h>
#include <string.h>

#include "driver/base/driver.h"
#include "driver/base/objects.h"
#include "driver/context/context.h"

enum { STACK_DEPTH = 64 };

static __thread struct {
    int depth;
    struct CUctx_st *contexts[STACK_DEPTH];
} stack;

static struct object_pool pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A real driver's defaults: 1 KiB of stack a thread, 1 MiB printf buffer, 8 MiB heap (CUDA C++ Programming Guide). */
static const size_t DEFAULT_LIMITS[LIMITS] = {1024, 1 << 20, 8 << 20, 2, 2048, 64, 0};

CUresult check_context(const struct CUctx_st *context, const char *call) {
    if (is_live(context, MARK_CONTEXT, call))
        return CUDA_SUCCESS;
    return context ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
}

struct CUctx_st *context_if_any(void) { return stack.depth ? stack.contexts[stack.depth - 1] : NULL; }

CUresult current_context(struct CUctx_st **context, const char *call) {
    CUresult result = driver_check(call);
    if (result != CUDA_SUCCESS)
        return result;
    *context = context_if_any();
    if (*context)
        return check_context(*context, call);
    misused(call, "", MISUSE_NO_CONTEXT);
    return CUDA_ERROR_INVALID_CONTEXT;
}

CUresult context_push(struct CUctx_st *context) {
    if (stack.depth == STACK_DEPTH)
        return CUDA_ERROR_OUT_OF_MEMORY;
    stack.contexts[stack.depth++] = context;
    return CUDA_SUCCESS;
}

CUresult context_make(struct CUctx_st **made, CUdevice device, unsigned int flags, unsigned int api_version) {
    uint32_t gpu = driver.gpu_of[device];
    if (load_u32(&gpu_of_device(device)->lost))
        return CUDA_ERROR_DEVICE_UNAVAILABLE;
    struct CUctx_st *context = object_make(&pool, sizeof *context);
    if (!context)
        return CUDA_ERROR_OUT_OF_MEMORY;
    bool full;
    int index = machine_context_create(&driver.machine, gpu, &full);
    if (index < 0) {
        object_drop(&pool, context);
        return full ? CUDA_ERROR_DEVICE_UNAVAILABLE : CUDA_ERROR_OUT_OF_MEMORY;
    }
    context->device = device;
    context->gpu = gpu;
    context->index = (uint32_t)index;
    context->shared = &driver.machine.shared->gpus[gpu].contexts[index];
    context->ring = &driver.machine.shared->gpus[gpu].rings[index];
    context->orders = orders_of(&driver.machine.shared->gpus[gpu], (uint32_t)index);
    context->id = context->shared->id;
    context->flags = flags;
    context->api_version = api_version;
    memcpy(context->limits, DEFAULT_LIMITS, sizeof DEFAULT_LIMITS);
    pthread_mutex_init(&context->lock, NULL);
    context->legacy = (struct CUstream_st){.mark = MARK_STREAM, .context = context};
    context->mark = MARK_CONTEXT;
    *made = context;
    return CUDA_SUCCESS;
}

void context_drop(struct CUctx_st *context) {
    if (context->shared->id == context->id)
        machine_context_destroy(&driver.machine, context->gpu, context->index);
    pthread_mutex_destroy(&context->lock);
    object_drop(&pool, context);
}

void context_forget(struct CUctx_st *context) {
    if (stack.depth && stack.contexts[stack.depth - 1] == context)
        stack.depth--;
}

/* ---- created ---- */

static CUresult create(CUcontext *pctx, unsigned int flags, CUdevice device, unsigned int api_version) {
    CHECK_DRIVER();
    if (!pctx || (flags & ~(unsigned int)CU_CTX_FLAGS_MASK))
        return CUDA_ERROR_INVALID_VALUE;
    if (!valid_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    struct CUctx_st *context;
    CUresult result = context_make(&context, device, flags, api_version);
    if (result != CUDA_SUCCESS)
        return result;
    result = context_push(context);
    if (result != CUDA_SUCCESS) {
        context_end(context);
        return result;
    }
    *pctx = context;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev) { return create(pctx, flags, dev, 3020); }

EXPORT CUresult cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams, unsigned int flags,
                               CUdevice dev) {
    /* Partitions of a GPU's processors need MPS, which is not here. */
    if (numParams != 0 || paramsArray)
        return CUDA_ERROR_NOT_SUPPORTED;
    return create(pctx, flags, dev, 3020);
}

EXPORT CUresult cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags, CUdevice dev) {
    if (ctxCreateParams && (ctxCreateParams->numExecAffinityParams != 0 || ctxCreateParams->cigParams))
        return CUDA_ERROR_NOT_SUPPORTED;
    return create(pctx, flags, dev, 3020);
}

EXPORT CUresult cuCtxDestroy_v2(CUcontext ctx) {
    CHECK_DRIVER();
    if (!ctx)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = check_context(ctx, __func__);
    if (result != CUDA_SUCCESS)
        return result;
    if (ctx->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    context_forget(ctx);
    return context_end(ctx);
}

/* ---- primary ---- */

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev) {
    CHECK_DRIVER();
    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    if (!valid_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&driver.lock);
    CUresult result = CUDA_SUCCESS;
    if (!driver.primary[dev]) {
        result = context_make(&driver.primary[dev], dev, driver.primary_flags[dev], 3020);
        if (result == CUDA_SUCCESS)
            driver.primary[dev]->primary = true;
    }
    if (result == CUDA_SUCCESS) {
        driver.primary_count[dev]++;
        *pctx = driver.primary[dev];
    }
    pthread_mutex_unlock(&driver.lock);
    return result;
}

/* A reset ends the context and leaves it retained as often as it was: each of those is released as ever. */
static CUresult end_primary(CUdevice dev, bool reset) {
    CHECK_DRIVER();
    if (!valid_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&driver.lock);
    struct CUctx_st *over = NULL;
    CUresult result = driver.primary_count[dev] || reset ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    if (reset || (driver.primary_count[dev] && --driver.primary_count[dev] == 0)) {
        over = driver.primary[dev];
        driver.primary[dev] = NULL;
    }
    pthread_mutex_unlock(&driver.lock);
    return over ? context_end(over) : result;
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) { return end_primary(dev, false); }
EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice dev) { return end_primary(dev, false); }
EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev) { return end_primary(dev, true); }
EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice dev) { return end_primary(dev, true); }

static CUresult set_primary_flags(CUdevice dev, unsigned int flags, bool while_active) {
    CHECK_DRIVER();
    if (!valid_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    if (flags & ~(unsigned int)CU_CTX_FLAGS_MASK)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&driver.lock);
    CUresult result = CUDA_SUCCESS;
    if (driver.primary[dev] && !while_active && driver.primary[dev]->flags != flags)
        result = CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE;
    else
        driver.primary_flags[dev] = flags;
    if (result == CUDA_SUCCESS && driver.primary[dev])
        driver.primary[dev]->flags = flags;
    pthread_mutex_unlock(&driver.lock);
    return result;
}

EXPORT CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags) { return set_primary_flags(dev, flags, false); }
EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags) { return set_primary_flags(dev, flags, true); }

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active) {
    CHECK_DRIVER();
    if (!flags || !active)
        return CUDA_ERROR_INVALID_VALUE;
    if (!valid_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&driver.lock);
    *flags = driver.primary_flags[dev];
    *active = driver.primary[dev] != NULL;
    pthread_mutex_unlock(&driver.lock);
    return CUDA_SUCCESS;
}

/* ---- the current one ---- */

EXPORT CUresult cuCtxPushCurrent_v2(CUcontext ctx) {
    CHECK_DRIVER();
    if (!ctx)
        return CUDA_ERROR_INVALID_CONTEXT;
    CUresult result = check_context(ctx, __func__);
    return result == CUDA_SUCCESS ? context_push(ctx) : result;
}

EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *pctx) {
    CHECK_DRIVER();
    if (!stack.depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    struct CUctx_st *popped = stack.contexts[--stack.depth];
    if (pctx)
        *pctx = popped;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetCurrent(CUcontext ctx) {
    CHECK_DRIVER();
    if (!ctx) {
        if (stack.depth)
            stack.depth--;
        return CUDA_SUCCESS;
    }
    CUresult result = check_context(ctx, __func__);
    if (result != CUDA_SUCCESS)
        return result;
    if (stack.depth)
        stack.depth--;
    return context_push(ctx);
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *pctx) {
    CHECK_DRIVER();
    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    *pctx = context_if_any();
    return CUDA_SUCCESS;
}
