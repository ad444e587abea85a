/* A driver of one context and one stream (a library called libcuda.so.1), which answers a question for an event as
 * it was told to, and counts the questions. */
#include <stddef.h>

#include "driver_api.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT void marks_answer(int answer);
EXPORT int marks_asked(void);

enum { EVENTS = 4096 };

static char context, events[EVENTS]; /* their addresses are the handles */
static int answer, asked, made;      /* atomic */

void marks_answer(int now) { __atomic_store_n(&answer, now, __ATOMIC_RELEASE); }

int marks_asked(void) { return __atomic_load_n(&asked, __ATOMIC_ACQUIRE); }

EXPORT CUresult cuInit(unsigned int Flags) { return Flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }

EXPORT CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev) {
    (void)flags;
    *pctx = (CUcontext)&context;
    return dev == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

EXPORT CUresult cuCtxPushCurrent_v2(CUcontext ctx) { return ctx != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT; }

EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *pctx) {
    *pctx = (CUcontext)&context;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *pctx) {
    *pctx = (CUcontext)&context;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device) {
    *device = 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                               unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                               unsigned int sharedMemBytes, CUstream hStream, void **kernelParams, void **extra) {
    (void)f, (void)gridDimX, (void)gridDimY, (void)gridDimZ, (void)blockDimX, (void)blockDimY, (void)blockDimZ;
    (void)sharedMemBytes, (void)hStream, (void)kernelParams, (void)extra;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags) {
    (void)Flags;
    *phEvent = (CUevent)&events[__atomic_fetch_add(&made, 1, __ATOMIC_RELAXED) % EVENTS];
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventDestroy_v2(CUevent hEvent) { return hEvent != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; }

EXPORT CUresult cuEventRecord(CUevent hEvent, CUstream hStream) {
    (void)hStream;
    return hEvent != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult cuEventQuery(CUevent hEvent) {
    (void)hEvent;
    (void)__atomic_add_fetch(&asked, 1, __ATOMIC_ACQ_REL);
    return (CUresult)__atomic_load_n(&answer, __ATOMIC_ACQUIRE);
}

/* It waits for nothing that it cannot tell of. */
EXPORT CUresult cuEventSynchronize(CUevent hEvent) {
    (void)hEvent;
    return (CUresult)__atomic_load_n(&answer, __ATOMIC_ACQUIRE);
}

EXPORT CUresult cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd) {
    (void)hStart, (void)hEnd;
    *pMilliseconds = 0;
    return (CUresult)__atomic_load_n(&answer, __ATOMIC_ACQUIRE);
}
