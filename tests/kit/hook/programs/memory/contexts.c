/* A driver with nothing but device 0's primary context and green contexts (a library called libcuda.so.1). What it is told of by
 * contexts_on_making is called within the call that makes the primary one, before that is there. */
#include <pthread.h>
#include <stddef.h>

#include "driver_api.h"

#define EXPORT __attribute__((visibility("default")))

enum { GREENS = 8 };

EXPORT void contexts_on_making(void (*call)(void));
EXPORT int contexts_made(void);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void (*on_making)(void);
static int primary, green[GREENS]; /* their addresses are the handles */
static int active, retained, made, green_count;
static __thread CUcontext current;

void contexts_on_making(void (*call)(void)) { on_making = call; }

int contexts_made(void) { return made; }

EXPORT CUresult cuInit(unsigned int Flags) { return Flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *is_active) {
    if (dev != 0)
        return CUDA_ERROR_INVALID_DEVICE;
    *flags = 0;
    pthread_mutex_lock(&lock);
    *is_active = active;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

static void retain(void) {
    int makes;

    pthread_mutex_lock(&lock);
    makes = !active;
    pthread_mutex_unlock(&lock);
    if (makes && on_making != NULL)
        on_making();
    pthread_mutex_lock(&lock);
    made += !active;
    active = 1;
    retained++;
    pthread_mutex_unlock(&lock);
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev) {
    if (dev != 0)
        return CUDA_ERROR_INVALID_DEVICE;
    retain();
    *pctx = (CUcontext)&primary;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
    CUresult result;

    pthread_mutex_lock(&lock);
    result = dev == 0 && retained > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    if (result == CUDA_SUCCESS && --retained == 0)
        active = 0;
    pthread_mutex_unlock(&lock);
    return result;
}

/* Without any resources it is refused. */
EXPORT CUresult cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags) {
    (void)flags;
    if (dev != 0 || desc == NULL || green_count == GREENS)
        return CUDA_ERROR_INVALID_VALUE;
    retain();
    *phCtx = (CUgreenCtx)&green[green_count++];
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGreenCtxDestroy(CUgreenCtx hCtx) {
    (void)hCtx;
    return cuDevicePrimaryCtxRelease_v2(0);
}

EXPORT CUresult cuCtxFromGreenCtx(CUcontext *pContext, CUgreenCtx hCtx) {
    *pContext = (CUcontext)hCtx;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPushCurrent_v2(CUcontext ctx) {
    current = ctx;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *pctx) {
    *pctx = current;
    current = NULL;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetCurrent(CUcontext ctx) { return cuCtxPushCurrent_v2(ctx); }

EXPORT CUresult cuCtxGetCurrent(CUcontext *pctx) {
    *pctx = current;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device) {
    *device = 0;
    return current != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize) {
    static CUdeviceptr last = 1 << 20;

    *dptr = last;
    last += bytesize;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr dptr) { return dptr != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }
