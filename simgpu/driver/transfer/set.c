/* Sets. */
#include "driver/base/driver.h"
#include "driver/stream/stream.h"
#include "driver/transfer/transfer.h"

static CUresult set(CUstream handle, CUdeviceptr to, size_t pitch, unsigned int value, unsigned int size, size_t width,
                    size_t height) {
    struct CUstream_st *stream;
    CUresult result = find_stream(handle, &stream, __func__);
    if (result != CUDA_SUCCESS)
        return result;
    if (to % size || (width && height && width > SIZE_MAX / 2 / size / height))
        return CUDA_ERROR_INVALID_VALUE;
    struct transfer transfer = {
        .box = {.to = (uintptr_t)to, .to_side = DEVICE, .to_pitch = pitch, .width = width * size, .height = height, .depth = 1},
        .element = size,
        .value = value,
    };
    /* The host does not wait for a set. */
    return transfer_submit(stream, &transfer, false);
}

#define SETS(bits, type)                                                                                                        \
    static CUresult do_cuMemsetD##bits##_v2(CUstream stream, CUdeviceptr to, type value, size_t count) {                        \
        return set(stream, to, 0, value, bits / 8, count, 1);                                                                   \
    }                                                                                                                           \
    EXPORT_PTDS(cuMemsetD##bits##_v2, (CUdeviceptr dstDevice, type value, size_t N), dstDevice, value, N)                       \
    static CUresult do_cuMemsetD##bits##Async(CUdeviceptr to, type value, size_t count, CUstream stream) {                      \
        return set(stream, to, 0, value, bits / 8, count, 1);                                                                   \
    }                                                                                                                           \
    EXPORT_PTSZ(cuMemsetD##bits##Async, (CUdeviceptr dstDevice, type value, size_t N, CUstream hStream), dstDevice, value, N,   \
                hStream)                                                                                                        \
    static CUresult do_cuMemsetD2D##bits##_v2(CUstream stream, CUdeviceptr to, size_t pitch, type value, size_t width,          \
                                              size_t height) {                                                                  \
        return set(stream, to, pitch, value, bits / 8, width, height);                                                          \
    }                                                                                                                           \
    EXPORT_PTDS(cuMemsetD2D##bits##_v2, (CUdeviceptr dstDevice, size_t dstPitch, type value, size_t Width, size_t Height),      \
                dstDevice, dstPitch, value, Width, Height)                                                                      \
    static CUresult do_cuMemsetD2D##bits##Async(CUdeviceptr to, size_t pitch, type value, size_t width, size_t height,          \
                                                CUstream stream) {                                                              \
        return set(stream, to, pitch, value, bits / 8, width, height);                                                          \
    }                                                                                                                           \
    EXPORT_PTSZ(cuMemsetD2D##bits##Async,                                                                                       \
                (CUdeviceptr dstDevice, size_t dstPitch, type value, size_t Width, size_t Height, CUstream hStream), dstDevice, \
                dstPitch, value, Width, Height, hStream)

SETS(8, unsigned char)
SETS(16, unsigned short)
SETS(32, unsigned int)
