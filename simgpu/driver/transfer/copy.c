/* Copies of lines of bytes, and into and out of arrays. */
#include "driver/array/array.h"
#include "driver/base/driver.h"
#include "driver/context/context.h"
#include "driver/transfer/transfer.h"

static CUresult do_cuMemcpy(CUstream stream, CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
    return copy_line(stream, (uintptr_t)dst, EITHER, (uintptr_t)src, EITHER, bytes, true);
}
EXPORT_PTDS(cuMemcpy, (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount), dst, src, ByteCount)

static CUresult do_cuMemcpyHtoD_v2(CUstream stream, CUdeviceptr dst, const void *src, size_t bytes) {
    return copy_line(stream, (uintptr_t)dst, DEVICE, (uintptr_t)src, HOST, bytes, true);
}
EXPORT_PTDS(cuMemcpyHtoD_v2, (CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount), dstDevice, srcHost, ByteCount)

static CUresult do_cuMemcpyDtoH_v2(CUstream stream, void *dst, CUdeviceptr src, size_t bytes) {
    return copy_line(stream, (uintptr_t)dst, HOST, (uintptr_t)src, DEVICE, bytes, true);
}
EXPORT_PTDS(cuMemcpyDtoH_v2, (void *dstHost, CUdeviceptr srcDevice, size_t ByteCount), dstHost, srcDevice, ByteCount)

/* The host does not wait for a copy from device to device. */
static CUresult do_cuMemcpyDtoD_v2(CUstream stream, CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
    return copy_line(stream, (uintptr_t)dst, DEVICE, (uintptr_t)src, DEVICE, bytes, false);
}
EXPORT_PTDS(cuMemcpyDtoD_v2, (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount), dstDevice, srcDevice, ByteCount)

static CUresult do_cuMemcpyPeer(CUstream stream, CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t bytes) {
    CHECK_DRIVER();
    CUresult result = check_context(to, __func__);
    if (result == CUDA_SUCCESS)
        result = check_context(from, __func__);
    if (result != CUDA_SUCCESS)
        return result;
    return copy_line(stream, (uintptr_t)dst, DEVICE, (uintptr_t)src, DEVICE, bytes, false);
}
EXPORT_PTDS(cuMemcpyPeer,
            (CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount),
            dstDevice, dstContext, srcDevice, srcContext, ByteCount)

static CUresult do_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
    return copy_line(stream, (uintptr_t)dst, EITHER, (uintptr_t)src, EITHER, bytes, false);
}
EXPORT_PTSZ(cuMemcpyAsync, (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream), dst, src, ByteCount, hStream)

static CUresult do_cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream) {
    return copy_line(stream, (uintptr_t)dst, DEVICE, (uintptr_t)src, HOST, bytes, false);
}
EXPORT_PTSZ(cuMemcpyHtoDAsync_v2, (CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream), dstDevice,
            srcHost, ByteCount, hStream)

static CUresult do_cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t bytes, CUstream stream) {
    return copy_line(stream, (uintptr_t)dst, HOST, (uintptr_t)src, DEVICE, bytes, false);
}
EXPORT_PTSZ(cuMemcpyDtoHAsync_v2, (void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream), dstHost, srcDevice,
            ByteCount, hStream)

static CUresult do_cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
    return copy_line(stream, (uintptr_t)dst, DEVICE, (uintptr_t)src, DEVICE, bytes, false);
}
EXPORT_PTSZ(cuMemcpyDtoDAsync_v2, (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream), dstDevice,
            srcDevice, ByteCount, hStream)

static CUresult do_cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t bytes,
                                     CUstream stream) {
    return do_cuMemcpyPeer(stream, dst, to, src, from, bytes);
}
EXPORT_PTSZ(cuMemcpyPeerAsync,
            (CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount,
             CUstream hStream),
            dstDevice, dstContext, srcDevice, srcContext, ByteCount, hStream)

/* ---- arrays, as one row of bytes ---- */

/* Host memory and device memory at one end, an array at the other. */
static CUresult to_array(CUstream stream, CUarray to, size_t offset, uintptr_t from, enum side side, size_t bytes, bool wait) {
    CHECK_DRIVER();
    CUresult result = check_array_line(to, offset, bytes);
    return result == CUDA_SUCCESS ? copy_line(stream, to->begin + offset, DEVICE, from, side, bytes, wait) : result;
}
static CUresult from_array(CUstream stream, uintptr_t to, enum side side, CUarray from, size_t offset, size_t bytes, bool wait) {
    CHECK_DRIVER();
    CUresult result = check_array_line(from, offset, bytes);
    return result == CUDA_SUCCESS ? copy_line(stream, to, side, from->begin + offset, DEVICE, bytes, wait) : result;
}

static CUresult do_cuMemcpyDtoA_v2(CUstream stream, CUarray to, size_t offset, CUdeviceptr from, size_t bytes) {
    return to_array(stream, to, offset, (uintptr_t)from, DEVICE, bytes, false);
}
EXPORT_PTDS(cuMemcpyDtoA_v2, (CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice, size_t ByteCount), dstArray, dstOffset,
            srcDevice, ByteCount)
static CUresult do_cuMemcpyAtoD_v2(CUstream stream, CUdeviceptr to, CUarray from, size_t offset, size_t bytes) {
    return from_array(stream, (uintptr_t)to, DEVICE, from, offset, bytes, false);
}
EXPORT_PTDS(cuMemcpyAtoD_v2, (CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset, size_t ByteCount), dstDevice, srcArray,
            srcOffset, ByteCount)
static CUresult do_cuMemcpyHtoA_v2(CUstream stream, CUarray to, size_t offset, const void *from, size_t bytes) {
    return to_array(stream, to, offset, (uintptr_t)from, HOST, bytes, true);
}
EXPORT_PTDS(cuMemcpyHtoA_v2, (CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount), dstArray, dstOffset,
            srcHost, ByteCount)
static CUresult do_cuMemcpyAtoH_v2(CUstream stream, void *to, CUarray from, size_t offset, size_t bytes) {
    return from_array(stream, (uintptr_t)to, HOST, from, offset, bytes, true);
}
EXPORT_PTDS(cuMemcpyAtoH_v2, (void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount), dstHost, srcArray, srcOffset,
            ByteCount)
static CUresult do_cuMemcpyAtoA_v2(CUstream stream, CUarray to, size_t to_offset, CUarray from, size_t from_offset,
                                   size_t bytes) {
    CHECK_DRIVER();
    CUresult result = check_array_line(from, from_offset, bytes);
    if (result != CUDA_SUCCESS)
        return result;
    return to_array(stream, to, to_offset, from->begin + from_offset, DEVICE, bytes, false);
}
EXPORT_PTDS(cuMemcpyAtoA_v2, (CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset, size_t ByteCount), dstArray,
            dstOffset, srcArray, srcOffset, ByteCount)
static CUresult do_cuMemcpyHtoAAsync_v2(CUarray to, size_t offset, const void *from, size_t bytes, CUstream stream) {
    return to_array(stream, to, offset, (uintptr_t)from, HOST, bytes, false);
}
EXPORT_PTSZ(cuMemcpyHtoAAsync_v2, (CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount, CUstream hStream),
            dstArray, dstOffset, srcHost, ByteCount, hStream)
static CUresult do_cuMemcpyAtoHAsync_v2(void *to, CUarray from, size_t offset, size_t bytes, CUstream stream) {
    return from_array(stream, (uintptr_t)to, HOST, from, offset, bytes, false);
}
EXPORT_PTSZ(cuMemcpyAtoHAsync_v2, (void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount, CUstream hStream),
            dstHost, srcArray, srcOffset, ByteCount, hStream)
