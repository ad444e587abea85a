/* Device memory: plain, pitched, managed. */
#include "driver/memory/memory.h"
#include "driver/allocation/allocation.h"
#include "driver/base/driver.h"
#include "driver/base/objects.h"
#include "driver/base/sizes.h"
#include "driver/capture/capture.h"
#include "driver/capture/graph_memory.h"
#include "driver/context/context.h"
#include "driver/stream/queue.h"

CUresult allocate(struct CUctx_st *context, size_t size, enum allocation_kind kind, unsigned int flags,
                  struct CUmemPoolHandle_st *pool, uintptr_t *made) {
    if (!size)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult error = queue_error(context);
    /* Allocation in a stream's order is safe during a capture, any other is not. */
    if (error == CUDA_SUCCESS && !pool)
        error = capture_check_unsafe();
    return error == CUDA_SUCCESS ? allocation_make(context, size, kind, flags, pool, made) : error;
}

CUresult release_device(uintptr_t begin) {
    struct allocation found;
    if (!find_allocation(begin, &found) || found.begin != begin) {
        misused(__func__, "address", MISUSE_UNKNOWN);
        return CUDA_ERROR_INVALID_VALUE;
    }
    switch (found.kind) {
    case ALLOCATION_GRAPH: return graph_memory_free(found.graph);
    case ALLOCATION_DEVICE:
    case ALLOCATION_MANAGED:
    case ALLOCATION_EXTERNAL:
    case ALLOCATION_SHARED: return release(begin, found.kind);
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

EXPORT CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
    CURRENT(context);
    if (!free || !total)
        return CUDA_ERROR_INVALID_VALUE;
    const struct simgpu_gpu *gpu = &driver.machine.shared->gpus[context->gpu];
    machine_reap(&driver.machine, clock_now_ns());
    uint64_t used = gpu_used_bytes(gpu);
    *total = gpu_total_bytes(gpu);
    *free = used < *total ? *total - used : 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize) {
    CURRENT(context);
    if (!dptr)
        return CUDA_ERROR_INVALID_VALUE;
    uintptr_t made;
    CUresult result = allocate(context, bytesize, ALLOCATION_DEVICE, 0, NULL, &made);
    if (result == CUDA_SUCCESS)
        *dptr = made;
    return result;
}

EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
                                   unsigned int ElementSizeBytes) {
    CURRENT(context);
    if (!dptr || !pPitch || !WidthInBytes || !Height ||
        (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16))
        return CUDA_ERROR_INVALID_VALUE;
    if (WidthInBytes > SIZE_MAX / 2 / Height)
        return CUDA_ERROR_OUT_OF_MEMORY;
    size_t pitch = (WidthInBytes + BLOCK - 1) / BLOCK * BLOCK;
    uintptr_t made;
    CUresult result = allocate(context, pitch * Height, ALLOCATION_DEVICE, 0, NULL, &made);
    if (result == CUDA_SUCCESS) {
        *dptr = made;
        *pPitch = pitch;
    }
    return result;
}

EXPORT CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags) {
    CURRENT(context);
    if (!dptr || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    uintptr_t made;
    CUresult result = allocate(context, bytesize, ALLOCATION_MANAGED, flags, NULL, &made);
    if (result == CUDA_SUCCESS)
        *dptr = made;
    return result;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr dptr) {
    CURRENT(context);
    (void)context;
    if (!dptr)
        return CUDA_SUCCESS;
    struct allocation allocation;
    if (!find_allocation((uintptr_t)dptr, &allocation)) {
        misused(__func__, "address", MISUSE_UNKNOWN);
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = capture_check_unsafe();
    /* As a real driver does: what is queued may still use it. */
    if (result == CUDA_SUCCESS && allocation.context)
        result = queue_drain(allocation.context, false);
    return result == CUDA_SUCCESS ? release_device((uintptr_t)dptr) : result;
}

EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr) {
    CURRENT(context);
    (void)context;
    struct allocation allocation;
    if (!find_allocation((uintptr_t)dptr, &allocation))
        return CUDA_ERROR_NOT_FOUND;
    if (pbase)
        *pbase = allocation.begin;
    if (psize)
        *psize = allocation.size;
    return CUDA_SUCCESS;
}
