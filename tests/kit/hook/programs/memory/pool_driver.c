/* A driver of pools (a library called libcuda.so.1): what it is told of by pools_on_asking is called once within the next call
 * that asks about one. It counts the calls of a pool that has ended, and all that ask about pools, contexts and streams. */
#include <pthread.h>
#include <stddef.h>

#include "driver_api.h"

#define EXPORT __attribute__((visibility("default")))

enum { POOLS = 8 };

EXPORT void pools_on_asking(void (*call)(void));
EXPORT int pools_misused(void);
EXPORT int pools_asked(void);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void (*on_asking)(void);
static char context;
static struct {
    int made, over;
} pools[POOLS]; /* their addresses are the handles; the first is the device's own */
static int count = 1, device_pool, misused, asked;

void pools_on_asking(void (*call)(void)) { on_asking = call; }

int pools_misused(void) { return misused; }

int pools_asked(void) { return asked; }

static void ask(void) {
    void (*call)(void) = on_asking;

    asked++;
    on_asking = NULL;
    if (call != NULL)
        call();
}

static CUresult use(CUmemoryPool pool) {
    const size_t index = (size_t)((const char *)pool - (const char *)pools) / sizeof(pools[0]);
    int over;

    pthread_mutex_lock(&lock);
    over = pools[index].over;
    misused += over;
    pthread_mutex_unlock(&lock);
    return over ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

EXPORT CUresult cuInit(unsigned int Flags) { return Flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }

EXPORT CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev) {
    (void)flags;
    *pctx = (CUcontext)&context;
    return dev == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

EXPORT CUresult cuCtxPushCurrent_v2(CUcontext ctx) {
    (void)ctx;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *pctx) {
    *pctx = (CUcontext)&context;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *pctx) {
    asked++;
    *pctx = (CUcontext)&context;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamGetCtx(CUstream hStream, CUcontext *pctx) {
    (void)hStream;
    return cuCtxGetCurrent(pctx);
}

EXPORT CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus) {
    (void)hStream;
    asked++;
    *captureStatus = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *count_out) {
    asked++;
    *count_out = 1;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device) {
    asked++;
    *device = 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps) {
    (void)poolProps;
    pthread_mutex_lock(&lock);
    *pool = (CUmemoryPool)&pools[count++];
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool) {
    const CUresult result = use(pool);

    pthread_mutex_lock(&lock);
    for (int i = 0; i < POOLS; i++) {
        if ((CUmemoryPool)&pools[i] != pool)
            continue;
        pools[i].over = 1;
        device_pool = device_pool == i ? 0 : device_pool;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value) {
    (void)attr;
    *(cuuint64_t *)value = 0;
    ask();
    return use(pool);
}

EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep) {
    (void)minBytesToKeep;
    ask();
    return use(pool);
}

EXPORT CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) {
    device_pool = (int)((size_t)((const char *)pool - (const char *)pools) / sizeof(pools[0]));
    return dev == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev) {
    pthread_mutex_lock(&lock);
    *pool = (CUmemoryPool)&pools[device_pool];
    pthread_mutex_unlock(&lock);
    ask();
    return dev == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
    *free = *total = (size_t)1 << 30;
    return CUDA_SUCCESS;
}

/* Not by its name: that is the hook's. */
static CUresult allocate(CUdeviceptr *dptr, size_t bytesize) {
    static CUdeviceptr last = 1 << 20;

    *dptr = last;
    last += bytesize;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize) { return allocate(dptr, bytesize); }

EXPORT CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream) {
    (void)hStream;
    return allocate(dptr, bytesize);
}
