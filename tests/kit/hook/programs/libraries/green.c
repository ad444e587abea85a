/* A driver with nothing but green contexts (a library called libcuda.so.1): two of them, on device 0, in a stack of current
 * contexts. It says what a context's end found: what is current, and how deep the stack is. */
#include <stddef.h>

#include "driver_api.h"

#define EXPORT __attribute__((visibility("default")))

enum { DEEPEST = 8 };

static CUcontext stack[DEEPEST];
static int depth;
static int greens[2], made, ended;

EXPORT CUresult cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags) {
    (void)desc;
    (void)flags;
    if (made == 2 || dev != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *phCtx = (CUgreenCtx)&greens[made++];
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxFromGreenCtx(CUcontext *pContext, CUgreenCtx hCtx) {
    if ((int *)hCtx < greens || (int *)hCtx >= greens + made)
        return CUDA_ERROR_INVALID_CONTEXT;
    *pContext = (CUcontext)hCtx;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPushCurrent_v2(CUcontext ctx) {
    if (depth == DEEPEST)
        return CUDA_ERROR_INVALID_VALUE;
    stack[depth++] = ctx;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *pctx) {
    if (depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    *pctx = stack[--depth];
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *pctx) {
    *pctx = depth > 0 ? stack[depth - 1] : NULL;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device) {
    *device = 0;
    return depth > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

EXPORT CUresult cuGreenCtxDestroy(CUgreenCtx hCtx) {
    if ((int *)hCtx < greens || (int *)hCtx >= greens + made)
        return CUDA_ERROR_INVALID_CONTEXT;
    ended++;
    return CUDA_SUCCESS;
}

/* How many contexts were ended, and how deep the stack is. */
EXPORT int green_ended(void);
EXPORT int green_depth(void);

int green_ended(void) { return ended; }

int green_depth(void) { return depth; }
