/* Copies and sets as they were before CUDA 3.2: addresses and sizes of 32 bits. */
#include "driver/base/driver.h"

EXPORT CUresult cuMemcpyHtoD(CUdeviceptr_v1 dstDevice, const void *srcHost, unsigned int ByteCount) {
    return cuMemcpyHtoD_v2(dstDevice, srcHost, ByteCount);
}
EXPORT CUresult cuMemcpyDtoH(void *dstHost, CUdeviceptr_v1 srcDevice, unsigned int ByteCount) {
    return cuMemcpyDtoH_v2(dstHost, srcDevice, ByteCount);
}
EXPORT CUresult cuMemcpyDtoD(CUdeviceptr_v1 dstDevice, CUdeviceptr_v1 srcDevice, unsigned int ByteCount) {
    return cuMemcpyDtoD_v2(dstDevice, srcDevice, ByteCount);
}
EXPORT CUresult cuMemcpyDtoA(CUarray dstArray, unsigned int dstOffset, CUdeviceptr_v1 srcDevice, unsigned int ByteCount) {
    return cuMemcpyDtoA_v2(dstArray, dstOffset, srcDevice, ByteCount);
}
EXPORT CUresult cuMemcpyAtoD(CUdeviceptr_v1 dstDevice, CUarray srcArray, unsigned int srcOffset, unsigned int ByteCount) {
    return cuMemcpyAtoD_v2(dstDevice, srcArray, srcOffset, ByteCount);
}
EXPORT CUresult cuMemcpyHtoA(CUarray dstArray, unsigned int dstOffset, const void *srcHost, unsigned int ByteCount) {
    return cuMemcpyHtoA_v2(dstArray, dstOffset, srcHost, ByteCount);
}
EXPORT CUresult cuMemcpyAtoH(void *dstHost, CUarray srcArray, unsigned int srcOffset, unsigned int ByteCount) {
    return cuMemcpyAtoH_v2(dstHost, srcArray, srcOffset, ByteCount);
}
EXPORT CUresult cuMemcpyAtoA(CUarray dstArray, unsigned int dstOffset, CUarray srcArray, unsigned int srcOffset,
                             unsigned int ByteCount) {
    return cuMemcpyAtoA_v2(dstArray, dstOffset, srcArray, srcOffset, ByteCount);
}
EXPORT CUresult cuMemcpyHtoAAsync(CUarray dstArray, unsigned int dstOffset, const void *srcHost, unsigned int ByteCount,
                                  CUstream hStream) {
    return cuMemcpyHtoAAsync_v2(dstArray, dstOffset, srcHost, ByteCount, hStream);
}
EXPORT CUresult cuMemcpyAtoHAsync(void *dstHost, CUarray srcArray, unsigned int srcOffset, unsigned int ByteCount,
                                  CUstream hStream) {
    return cuMemcpyAtoHAsync_v2(dstHost, srcArray, srcOffset, ByteCount, hStream);
}
EXPORT CUresult cuMemcpyHtoDAsync(CUdeviceptr_v1 dstDevice, const void *srcHost, unsigned int ByteCount, CUstream hStream) {
    return cuMemcpyHtoDAsync_v2(dstDevice, srcHost, ByteCount, hStream);
}
EXPORT CUresult cuMemcpyDtoHAsync(void *dstHost, CUdeviceptr_v1 srcDevice, unsigned int ByteCount, CUstream hStream) {
    return cuMemcpyDtoHAsync_v2(dstHost, srcDevice, ByteCount, hStream);
}
EXPORT CUresult cuMemcpyDtoDAsync(CUdeviceptr_v1 dstDevice, CUdeviceptr_v1 srcDevice, unsigned int ByteCount, CUstream hStream) {
    return cuMemcpyDtoDAsync_v2(dstDevice, srcDevice, ByteCount, hStream);
}

/* ---- planes and boxes ---- */

static const CUDA_MEMCPY2D *widen_plane(const CUDA_MEMCPY2D_v1 *from, CUDA_MEMCPY2D *wide) {
    if (!from)
        return NULL;
    *wide = (CUDA_MEMCPY2D){
        .srcXInBytes = from->srcXInBytes,
        .srcY = from->srcY,
        .srcMemoryType = from->srcMemoryType,
        .srcHost = from->srcHost,
        .srcDevice = from->srcDevice,
        .srcArray = from->srcArray,
        .srcPitch = from->srcPitch,
        .dstXInBytes = from->dstXInBytes,
        .dstY = from->dstY,
        .dstMemoryType = from->dstMemoryType,
        .dstHost = from->dstHost,
        .dstDevice = from->dstDevice,
        .dstArray = from->dstArray,
        .dstPitch = from->dstPitch,
        .WidthInBytes = from->WidthInBytes,
        .Height = from->Height,
    };
    return wide;
}

static const CUDA_MEMCPY3D *widen_box(const CUDA_MEMCPY3D_v1 *from, CUDA_MEMCPY3D *wide) {
    if (!from)
        return NULL;
    *wide = (CUDA_MEMCPY3D){
        .srcXInBytes = from->srcXInBytes,
        .srcY = from->srcY,
        .srcZ = from->srcZ,
        .srcMemoryType = from->srcMemoryType,
        .srcHost = from->srcHost,
        .srcDevice = from->srcDevice,
        .srcArray = from->srcArray,
        .srcPitch = from->srcPitch,
        .srcHeight = from->srcHeight,
        .dstXInBytes = from->dstXInBytes,
        .dstY = from->dstY,
        .dstZ = from->dstZ,
        .dstMemoryType = from->dstMemoryType,
        .dstHost = from->dstHost,
        .dstDevice = from->dstDevice,
        .dstArray = from->dstArray,
        .dstPitch = from->dstPitch,
        .dstHeight = from->dstHeight,
        .WidthInBytes = from->WidthInBytes,
        .Height = from->Height,
        .Depth = from->Depth,
    };
    return wide;
}

EXPORT CUresult cuMemcpy2D(const CUDA_MEMCPY2D_v1 *pCopy) {
    CUDA_MEMCPY2D wide;
    return cuMemcpy2D_v2(widen_plane(pCopy, &wide));
}
EXPORT CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D_v1 *pCopy) {
    CUDA_MEMCPY2D wide;
    return cuMemcpy2DUnaligned_v2(widen_plane(pCopy, &wide));
}
EXPORT CUresult cuMemcpy3D(const CUDA_MEMCPY3D_v1 *pCopy) {
    CUDA_MEMCPY3D wide;
    return cuMemcpy3D_v2(widen_box(pCopy, &wide));
}
EXPORT CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D_v1 *pCopy, CUstream hStream) {
    CUDA_MEMCPY2D wide;
    return cuMemcpy2DAsync_v2(widen_plane(pCopy, &wide), hStream);
}
EXPORT CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D_v1 *pCopy, CUstream hStream) {
    CUDA_MEMCPY3D wide;
    return cuMemcpy3DAsync_v2(widen_box(pCopy, &wide), hStream);
}

/* ---- sets ---- */

#define SETS(bits, type)                                                                                               \
    EXPORT CUresult cuMemsetD##bits(CUdeviceptr_v1 dstDevice, type value, unsigned int N) {                            \
        return cuMemsetD##bits##_v2(dstDevice, value, N);                                                              \
    }                                                                                                                  \
    EXPORT CUresult cuMemsetD2D##bits(CUdeviceptr_v1 dstDevice, unsigned int dstPitch, type value, unsigned int Width, \
                                      unsigned int Height) {                                                           \
        return cuMemsetD2D##bits##_v2(dstDevice, dstPitch, value, Width, Height);                                      \
    }
SETS(8, unsigned char)
SETS(16, unsigned short)
SETS(32, unsigned int)
