/* Where managed memory lies: what is moved on demand takes time on the device, and nothing else changes. */
#include "driver/allocation/allocation.h"
#include "driver/base/driver.h"
#include "driver/base/pace.h"
#include "driver/capture/capture.h"
#include "driver/stream/queue.h"
#include "driver/stream/stream.h"
#include "driver/transfer/transfer.h"

/* Where a prefetch goes. */
static CUresult check_location(const CUmemLocation *location) {
    switch (location->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE: return valid_device(location->id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

/* The forms before 12.2 name a device, or −1: the host. */
static CUmemLocation location_of(CUdevice device) {
    CUmemLocationType type = device == -1 ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
    return (CUmemLocation){.type = type, .id = device};
}

static CUresult check_managed(CUdeviceptr address, size_t size) {
    struct allocation found;
    if (!size || !find_range((uintptr_t)address, size, &found) || found.kind != ALLOCATION_MANAGED)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* As long as a copy over the bus; discarded pages are only forgotten. */
static CUresult submit(struct CUstream_st *stream, size_t bytes) {
    CUresult result = capture_check_legacy(stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->capture)
        return capture_break(stream);
    pace_spend(pace_now()->launch_ns);
    return queue_push(stream, SIMGPU_COPY, transfer_duration_ns(bytes, false), SIMGPU_PLACE_UP, NULL);
}

static CUresult prefetch(CUdeviceptr address, size_t size, const CUmemLocation *location, unsigned int flags, CUstream handle) {
    struct CUstream_st *stream;
    CUresult result = find_stream(handle, &stream, __func__);
    if (result == CUDA_SUCCESS)
        result = check_location(location);
    if (result == CUDA_SUCCESS)
        result = flags ? CUDA_ERROR_INVALID_VALUE : check_managed(address, size);
    return result == CUDA_SUCCESS ? submit(stream, size) : result;
}

static CUresult do_cuMemPrefetchAsync(CUdeviceptr address, size_t size, CUdevice device, CUstream stream) {
    CUmemLocation location = location_of(device);
    return prefetch(address, size, &location, 0, stream);
}
EXPORT_PTSZ(cuMemPrefetchAsync, (CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream), devPtr, count,
            dstDevice, hStream)
static CUresult do_cuMemPrefetchAsync_v2(CUdeviceptr address, size_t size, CUmemLocation location, unsigned int flags,
                                         CUstream stream) {
    return prefetch(address, size, &location, flags, stream);
}
EXPORT_PTSZ(cuMemPrefetchAsync_v2,
            (CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned int flags, CUstream hStream), devPtr, count,
            location, flags, hStream)

/* ---- many at once ---- */

/* Where each goes, when anywhere; as in a batch of copies a location holds up to the next one's index. */
static CUresult check_batch(const CUdeviceptr *addresses, const size_t *sizes, size_t count, const CUmemLocation *locations,
                            const size_t *indices, size_t location_count) {
    if (!addresses || !sizes || !count || (locations && (!indices || !location_count || indices[0] != 0)))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    for (size_t index = 0; result == CUDA_SUCCESS && locations && index < location_count; index++) {
        bool rising = indices[index] < count && (!index || indices[index] > indices[index - 1]);
        result = rising ? check_location(&locations[index]) : CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t index = 0; result == CUDA_SUCCESS && index < count; index++)
        result = check_managed(addresses[index], sizes[index]);
    return result;
}

static CUresult batch(const CUdeviceptr *addresses, const size_t *sizes, size_t count, const CUmemLocation *locations,
                      const size_t *indices, size_t location_count, unsigned long long flags, CUstream handle) {
    struct CUstream_st *stream;
    CUresult result = find_stream(handle, &stream, __func__);
    if (result == CUDA_SUCCESS)
        result = flags ? CUDA_ERROR_INVALID_VALUE : check_batch(addresses, sizes, count, locations, indices, location_count);
    for (size_t index = 0; result == CUDA_SUCCESS && index < count; index++)
        result = submit(stream, locations ? sizes[index] : 0);
    return result;
}

static CUresult move_batch(CUdeviceptr *addresses, size_t *sizes, size_t count, CUmemLocation *locations, size_t *indices,
                           size_t location_count, unsigned long long flags, CUstream stream) {
    if (!locations)
        return CUDA_ERROR_INVALID_VALUE;
    return batch(addresses, sizes, count, locations, indices, location_count, flags, stream);
}

static CUresult do_cuMemPrefetchBatchAsync(CUdeviceptr *addresses, size_t *sizes, size_t count, CUmemLocation *locations,
                                           size_t *indices, size_t location_count, unsigned long long flags, CUstream stream) {
    return move_batch(addresses, sizes, count, locations, indices, location_count, flags, stream);
}
EXPORT_PTSZ(cuMemPrefetchBatchAsync,
            (CUdeviceptr * dptrs, size_t *sizes, size_t count, CUmemLocation *prefetchLocs, size_t *prefetchLocIdxs,
             size_t numPrefetchLocs, unsigned long long flags, CUstream hStream),
            dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags, hStream)

static CUresult do_cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *addresses, size_t *sizes, size_t count,
                                                     CUmemLocation *locations, size_t *indices, size_t location_count,
                                                     unsigned long long flags, CUstream stream) {
    return move_batch(addresses, sizes, count, locations, indices, location_count, flags, stream);
}
EXPORT_PTSZ(cuMemDiscardAndPrefetchBatchAsync,
            (CUdeviceptr * dptrs, size_t *sizes, size_t count, CUmemLocation *prefetchLocs, size_t *prefetchLocIdxs,
             size_t numPrefetchLocs, unsigned long long flags, CUstream hStream),
            dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags, hStream)

static CUresult do_cuMemDiscardBatchAsync(CUdeviceptr *addresses, size_t *sizes, size_t count, unsigned long long flags,
                                          CUstream stream) {
    return batch(addresses, sizes, count, NULL, NULL, 0, flags, stream);
}
EXPORT_PTSZ(cuMemDiscardBatchAsync,
            (CUdeviceptr * dptrs, size_t *sizes, size_t count, unsigned long long flags, CUstream hStream), dptrs, sizes, count,
            flags, hStream)

/* ---- advice, which is taken and changes nothing ---- */

static CUresult advise(CUdeviceptr address, size_t size, CUmem_advise advice, const CUmemLocation *location) {
    CHECK_DRIVER();
    CUresult result = check_managed(address, size);
    if (result != CUDA_SUCCESS)
        return result;
    switch (advice) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION: return CUDA_SUCCESS;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY: return check_location(location);
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

EXPORT CUresult cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device) {
    CUmemLocation location = location_of(device);
    return advise(devPtr, count, advice, &location);
}
EXPORT CUresult cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location) {
    return advise(devPtr, count, advice, &location);
}

/* Who may touch managed memory while the GPU works: everybody may here. */
static CUresult do_cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags) {
    (void)length;
    struct CUstream_st *stream;
    CUresult result = find_stream(hStream, &stream, __func__);
    if (result != CUDA_SUCCESS)
        return result;
    struct allocation allocation;
    if (!find_allocation(dptr, &allocation) || allocation.kind != ALLOCATION_MANAGED)
        return CUDA_ERROR_INVALID_VALUE;
    bool one = flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST || flags == CU_MEM_ATTACH_SINGLE;
    return one ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
EXPORT_PTSZ(cuStreamAttachMemAsync, (CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags), hStream, dptr,
            length, flags)
