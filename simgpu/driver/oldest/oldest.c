/* The forms from before CUDA 3.2 and 4.0, which drivers still export: addresses and sizes of 32 bits. What they allocate
 * lies below 4 GiB. The calls reach this library's own functions, whoever stands in front: it is bound to itself. */
#include <limits.h>

#include "driver/allocation/allocation.h"
#include "driver/base/driver.h"
#include "driver/base/sizes.h"
#include "driver/context/context.h"
#include "driver/memory/memory.h"

static unsigned int clamp(size_t bytes) { return bytes < UINT_MAX ? (unsigned int)bytes : UINT_MAX; }

/* ---- contexts, streams, events ---- */

EXPORT CUresult cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev) { return cuCtxCreate_v2(pctx, flags, dev); }

EXPORT CUresult cuCtxAttach(CUcontext *pctx, unsigned int flags) {
    CURRENT(context);
    if (!pctx || flags)
        return CUDA_ERROR_INVALID_VALUE;
    __atomic_add_fetch(&context->attached, 1, __ATOMIC_RELAXED);
    *pctx = context;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxDetach(CUcontext ctx) {
    CURRENT(context);
    if (ctx != context)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (__atomic_load_n(&context->attached, __ATOMIC_RELAXED)) {
        __atomic_sub_fetch(&context->attached, 1, __ATOMIC_RELAXED);
        return CUDA_SUCCESS;
    }
    return cuCtxDestroy_v2(ctx);
}

/* Not while somebody is attached. */
EXPORT CUresult cuCtxDestroy(CUcontext ctx) {
    CHECK_DRIVER();
    CUresult result = check_context(ctx, __func__);
    if (result == CUDA_SUCCESS && __atomic_load_n(&ctx->attached, __ATOMIC_RELAXED))
        result = CUDA_ERROR_INVALID_CONTEXT;
    return result == CUDA_SUCCESS ? cuCtxDestroy_v2(ctx) : result;
}

EXPORT CUresult cuCtxPushCurrent(CUcontext ctx) { return cuCtxPushCurrent_v2(ctx); }
EXPORT CUresult cuCtxPopCurrent(CUcontext *pctx) { return cuCtxPopCurrent_v2(pctx); }
EXPORT CUresult cuStreamDestroy(CUstream hStream) { return cuStreamDestroy_v2(hStream); }
EXPORT CUresult cuEventDestroy(CUevent hEvent) { return cuEventDestroy_v2(hEvent); }

/* ---- memory ---- */

EXPORT CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice dev) {
    size_t total;
    CUresult result = cuDeviceTotalMem_v2(bytes ? &total : NULL, dev);
    if (result == CUDA_SUCCESS)
        *bytes = clamp(total);
    return result;
}

EXPORT CUresult cuMemGetInfo(unsigned int *free, unsigned int *total) {
    size_t wide_free, wide_total;
    CUresult result = cuMemGetInfo_v2(free ? &wide_free : NULL, total ? &wide_total : NULL);
    if (result == CUDA_SUCCESS) {
        *free = clamp(wide_free);
        *total = clamp(wide_total);
    }
    return result;
}

static CUresult allocate_low(CUdeviceptr_v1 *pointer, size_t size) {
    CURRENT(context);
    uintptr_t made;
    if (!pointer)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = allocate(context, size, ALLOCATION_DEVICE, ALLOCATE_LOW, NULL, &made);
    if (result == CUDA_SUCCESS)
        *pointer = (CUdeviceptr_v1)made;
    return result;
}

EXPORT CUresult cuMemAlloc(CUdeviceptr_v1 *dptr, unsigned int bytesize) { return allocate_low(dptr, bytesize); }

EXPORT CUresult cuMemAllocPitch(CUdeviceptr_v1 *dptr, unsigned int *pPitch, unsigned int WidthInBytes, unsigned int Height,
                                unsigned int ElementSizeBytes) {
    CHECK_DRIVER();
    if (!pPitch || !WidthInBytes || !Height || (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16))
        return CUDA_ERROR_INVALID_VALUE;
    size_t pitch = round_up(WidthInBytes, BLOCK);
    CUresult result = allocate_low(dptr, pitch * Height);
    if (result == CUDA_SUCCESS)
        *pPitch = (unsigned int)pitch;
    return result;
}

EXPORT CUresult cuMemFree(CUdeviceptr_v1 dptr) { return cuMemFree_v2(dptr); }
EXPORT CUresult cuMemAllocHost(void **pp, unsigned int bytesize) { return cuMemAllocHost_v2(pp, bytesize); }
EXPORT CUresult cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags) {
    return cuMemHostRegister_v2(p, bytesize, Flags);
}

/* An address that 32 bits cannot hold. */
static CUresult narrow(CUresult result, CUdeviceptr wide, CUdeviceptr_v1 *pointer) {
    if (result == CUDA_SUCCESS && pointer && wide > UINT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && pointer)
        *pointer = (CUdeviceptr_v1)wide;
    return result;
}

EXPORT CUresult cuMemHostGetDevicePointer(CUdeviceptr_v1 *pdptr, void *p, unsigned int Flags) {
    CUdeviceptr wide = 0;
    CUresult result = cuMemHostGetDevicePointer_v2(pdptr ? &wide : NULL, p, Flags);
    return narrow(result, wide, pdptr);
}

EXPORT CUresult cuMemGetAddressRange(CUdeviceptr_v1 *pbase, unsigned int *psize, CUdeviceptr_v1 dptr) {
    CUdeviceptr wide = 0;
    size_t size = 0;
    CUresult result = cuMemGetAddressRange_v2(&wide, &size, dptr);
    result = narrow(result, wide, pbase);
    if (result == CUDA_SUCCESS && psize)
        *psize = clamp(size);
    return result;
}

EXPORT CUresult cuModuleGetGlobal(CUdeviceptr_v1 *dptr, unsigned int *bytes, CUmodule hmod, const char *name) {
    CUdeviceptr wide = 0;
    size_t size = 0;
    CUresult result = cuModuleGetGlobal_v2(&wide, &size, hmod, name);
    result = narrow(result, wide, dptr);
    if (result == CUDA_SUCCESS && bytes)
        *bytes = clamp(size);
    return result;
}

/* ---- arrays ---- */

EXPORT CUresult cuArrayCreate(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR_v1 *pAllocateArray) {
    const CUDA_ARRAY_DESCRIPTOR_v1 *from = pAllocateArray;
    CUDA_ARRAY_DESCRIPTOR wide = {0};
    if (from)
        wide = (CUDA_ARRAY_DESCRIPTOR){from->Width, from->Height, from->Format, from->NumChannels};
    return cuArrayCreate_v2(pHandle, from ? &wide : NULL);
}

EXPORT CUresult cuArray3DCreate(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR_v1 *pAllocateArray) {
    const CUDA_ARRAY3D_DESCRIPTOR_v1 *from = pAllocateArray;
    CUDA_ARRAY3D_DESCRIPTOR wide = {0};
    if (from)
        wide = (CUDA_ARRAY3D_DESCRIPTOR){from->Width, from->Height, from->Depth, from->Format, from->NumChannels, from->Flags};
    return cuArray3DCreate_v2(pHandle, from ? &wide : NULL);
}

EXPORT CUresult cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR_v1 *pArrayDescriptor, CUarray hArray) {
    CUDA_ARRAY_DESCRIPTOR wide;
    CUresult result = cuArrayGetDescriptor_v2(pArrayDescriptor ? &wide : NULL, hArray);
    if (result == CUDA_SUCCESS)
        *pArrayDescriptor = (CUDA_ARRAY_DESCRIPTOR_v1){clamp(wide.Width), clamp(wide.Height), wide.Format, wide.NumChannels};
    return result;
}

EXPORT CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR_v1 *pArrayDescriptor, CUarray hArray) {
    CUDA_ARRAY3D_DESCRIPTOR wide;
    CUresult result = cuArray3DGetDescriptor_v2(pArrayDescriptor ? &wide : NULL, hArray);
    if (result == CUDA_SUCCESS)
        *pArrayDescriptor = (CUDA_ARRAY3D_DESCRIPTOR_v1){clamp(wide.Width), clamp(wide.Height), clamp(wide.Depth),
                                                         wide.Format,       wide.NumChannels,   wide.Flags};
    return result;
}
