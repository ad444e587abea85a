/* Allocations in a stream's order. One is good from the call on, and its place is free from the call on: both earlier
 * than a real driver has them, which no program can rely against. */
#include "driver/allocation/allocation.h"
#include "driver/base/driver.h"
#include "driver/capture/capture.h"
#include "driver/capture/graph_memory.h"
#include "driver/context/context.h"
#include "driver/memory/memory.h"
#include "driver/pool/pool.h"
#include "driver/stream/stream.h"

static CUresult allocate_async(CUdeviceptr *made, size_t size, struct CUmemPoolHandle_st *pool, CUstream handle) {
    struct CUstream_st *stream;
    CUresult result = find_stream(handle, &stream, __func__);
    if (result != CUDA_SUCCESS)
        return result;
    if (!made || !size)
        return CUDA_ERROR_INVALID_VALUE;
    if (!pool)
        pool = current_pool(stream->context->device);
    if (pool->fd >= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture)
        return capture_allocation(stream, pool->device, size, made);
    result = capture_check_legacy(stream);
    uintptr_t address;
    if (result == CUDA_SUCCESS)
        result = allocate(stream->context, size, ALLOCATION_DEVICE, 0, pool, &address);
    if (result == CUDA_SUCCESS)
        *made = address;
    return result;
}

static CUresult do_cuMemAllocAsync(CUdeviceptr *dptr, size_t size, CUstream stream) {
    return allocate_async(dptr, size, NULL, stream);
}
EXPORT_PTSZ(cuMemAllocAsync, (CUdeviceptr * dptr, size_t bytesize, CUstream hStream), dptr, bytesize, hStream)

static CUresult do_cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t size, CUmemoryPool pool, CUstream stream) {
    POOL(pool);
    return allocate_async(dptr, size, pool, stream);
}
EXPORT_PTSZ(cuMemAllocFromPoolAsync, (CUdeviceptr * dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream), dptr, bytesize,
            pool, hStream)

static CUresult do_cuMemFreeAsync(CUdeviceptr dptr, CUstream handle) {
    struct CUstream_st *stream;
    CUresult result = find_stream(handle, &stream, __func__);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->capture)
        return capture_free(stream, dptr);
    result = capture_check_legacy(stream);
    return result == CUDA_SUCCESS ? release_device((uintptr_t)dptr) : result;
}
EXPORT_PTSZ(cuMemFreeAsync, (CUdeviceptr dptr, CUstream hStream), dptr, hStream)
