/* Copies and sets. The bytes move when the call is made: kernels here write no memory, so that in the order of the calls
 * is the order of the streams. The time that a copy takes is queued like a kernel's. */
#include <string.h>

#include "driver/driver.h"
#include "driver/graph.h"

/* A copy's own time and its bytes for each nanosecond: PCIe 3.0 x16 gives about 12 GB/s; device memory several hundred. */
#define COPY_START_NS 1000u
#define BUS_BYTES_NS 12u
#define DEVICE_BYTES_NS 400u
#define MOST_BYTES ((size_t)1 << 47)

enum side { HOST, DEVICE, EITHER };

static bool on_device(uintptr_t address, size_t size, struct allocation *found) {
    return find_allocation(address, found) && size <= found->size - (address - found->begin) &&
           (found->kind == ALLOCATION_DEVICE || found->kind == ALLOCATION_MANAGED);
}

/* Whether `size` bytes can be read or written there; `device` says on which side they are. */
static CUresult check_range(uintptr_t address, size_t size, enum side side, bool *device) {
    struct allocation found;
    *device = on_device(address, size, &found);
    if (side == DEVICE && !*device) {
        /* Host memory that the device may use passes too. */
        if (!find_allocation(address, &found) || size > found.size - (address - found.begin))
            return CUDA_ERROR_INVALID_VALUE;
    }
    return address || !size ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

struct box {
    uintptr_t to, from;
    enum side to_side, from_side;
    size_t to_pitch, from_pitch; /* bytes from row to row */
    size_t to_slice, from_slice; /* bytes from plane to plane */
    size_t width, height, depth;
};

/* Bytes from the first to the last; SIZE_MAX / 2: more than there can be. */
static size_t extent(size_t pitch, size_t slice, const struct box *box) {
    size_t planes, rows;
    if (__builtin_mul_overflow(box->depth - 1, slice, &planes) || __builtin_mul_overflow(box->height - 1, pitch, &rows) ||
        planes > MOST_BYTES || rows > MOST_BYTES)
        return SIZE_MAX / 2;
    return planes + rows + box->width;
}

static CUresult submit(struct CUstream_st *stream, uint32_t kind, uint64_t duration_ns, bool wait) {
    CUresult result;
    if (stream->capture && wait)
        return capture_break(stream);
    if (stream->capture)
        return capture_work(stream, &(struct node_work){.kind = kind, .duration_ns = duration_ns});
    result = queue_push(stream, kind, duration_ns, NULL);
    if (result == CUDA_SUCCESS && wait)
        result = queue_wait(stream->context, stream_after(stream), stream->context->flags & CU_CTX_SCHED_BLOCKING_SYNC);
    return result;
}

static CUresult copy(CUstream handle, const struct box *box, bool wait) {
    struct CUstream_st *stream;
    CUresult result = find_stream(handle, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (!box->width || !box->height || !box->depth)
        return CUDA_SUCCESS;
    /* No address space holds more; sums of sizes stay far from their end. */
    if (box->width > MOST_BYTES || box->height > MOST_BYTES / box->width ||
        box->depth > MOST_BYTES / box->width / box->height)
        return CUDA_ERROR_INVALID_VALUE;
    size_t bytes = box->width * box->height * box->depth;
    bool to_device, from_device;
    result = check_range(box->to, extent(box->to_pitch, box->to_slice, box), box->to_side, &to_device);
    if (result == CUDA_SUCCESS)
        result = check_range(box->from, extent(box->from_pitch, box->from_slice, box), box->from_side, &from_device);
    if (result == CUDA_SUCCESS)
        result = queue_error(stream->context);
    if (result == CUDA_SUCCESS)
        result = capture_check_legacy(stream);
    if (result != CUDA_SUCCESS)
        return result;
    for (size_t plane = 0; plane < box->depth; plane++) {
        for (size_t row = 0; row < box->height; row++)
            memmove((char *)box->to + plane * box->to_slice + row * box->to_pitch,
                    (const char *)box->from + plane * box->from_slice + row * box->from_pitch, box->width);
    }
    uint64_t rate = to_device && from_device ? DEVICE_BYTES_NS : BUS_BYTES_NS;
    return submit(stream, SIMGPU_COPY, COPY_START_NS + bytes / rate, wait);
}

static CUresult copy_line(CUstream stream, uintptr_t to, enum side to_side, uintptr_t from, enum side from_side,
                          size_t bytes, bool wait) {
    struct box box = {.to = to, .from = from, .to_side = to_side, .from_side = from_side, .width = bytes, .height = 1,
                      .depth = 1};
    return copy(stream, &box, wait);
}

/* ---- lines ---- */

static CUresult do_cuMemcpy(CUstream stream, CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
    return copy_line(stream, (uintptr_t)dst, EITHER, (uintptr_t)src, EITHER, bytes, true);
}
EXPORT_PTDS(cuMemcpy, (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount), dst, src, ByteCount)

static CUresult do_cuMemcpyHtoD_v2(CUstream stream, CUdeviceptr dst, const void *src, size_t bytes) {
    return copy_line(stream, (uintptr_t)dst, DEVICE, (uintptr_t)src, HOST, bytes, true);
}
EXPORT_PTDS(cuMemcpyHtoD_v2, (CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount), dstDevice, srcHost,
            ByteCount)

static CUresult do_cuMemcpyDtoH_v2(CUstream stream, void *dst, CUdeviceptr src, size_t bytes) {
    return copy_line(stream, (uintptr_t)dst, HOST, (uintptr_t)src, DEVICE, bytes, true);
}
EXPORT_PTDS(cuMemcpyDtoH_v2, (void *dstHost, CUdeviceptr srcDevice, size_t ByteCount), dstHost, srcDevice, ByteCount)

/* The host does not wait for a copy from device to device. */
static CUresult do_cuMemcpyDtoD_v2(CUstream stream, CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
    return copy_line(stream, (uintptr_t)dst, DEVICE, (uintptr_t)src, DEVICE, bytes, false);
}
EXPORT_PTDS(cuMemcpyDtoD_v2, (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount), dstDevice, srcDevice,
            ByteCount)

static CUresult do_cuMemcpyPeer(CUstream stream, CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from,
                                size_t bytes) {
    CHECK_DRIVER();
    CUresult result = check_context(to);
    if (result == CUDA_SUCCESS)
        result = check_context(from);
    if (result != CUDA_SUCCESS)
        return result;
    return copy_line(stream, (uintptr_t)dst, DEVICE, (uintptr_t)src, DEVICE, bytes, false);
}
EXPORT_PTDS(cuMemcpyPeer,
            (CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
             size_t ByteCount),
            dstDevice, dstContext, srcDevice, srcContext, ByteCount)

static CUresult do_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
    return copy_line(stream, (uintptr_t)dst, EITHER, (uintptr_t)src, EITHER, bytes, false);
}
EXPORT_PTSZ(cuMemcpyAsync, (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream), dst, src, ByteCount,
            hStream)

static CUresult do_cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream) {
    return copy_line(stream, (uintptr_t)dst, DEVICE, (uintptr_t)src, HOST, bytes, false);
}
EXPORT_PTSZ(cuMemcpyHtoDAsync_v2, (CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream),
            dstDevice, srcHost, ByteCount, hStream)

static CUresult do_cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t bytes, CUstream stream) {
    return copy_line(stream, (uintptr_t)dst, HOST, (uintptr_t)src, DEVICE, bytes, false);
}
EXPORT_PTSZ(cuMemcpyDtoHAsync_v2, (void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream), dstHost,
            srcDevice, ByteCount, hStream)

static CUresult do_cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
    return copy_line(stream, (uintptr_t)dst, DEVICE, (uintptr_t)src, DEVICE, bytes, false);
}
EXPORT_PTSZ(cuMemcpyDtoDAsync_v2,
            (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream), dstDevice, srcDevice,
            ByteCount, hStream)

static CUresult do_cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t bytes,
                                     CUstream stream) {
    return do_cuMemcpyPeer(stream, dst, to, src, from, bytes);
}
EXPORT_PTSZ(cuMemcpyPeerAsync,
            (CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
             size_t ByteCount, CUstream hStream),
            dstDevice, dstContext, srcDevice, srcContext, ByteCount, hStream)

/* ---- planes and boxes ---- */

/* One end of a 2-D or 3-D copy: where it begins, and on which side that is. Arrays are not simulated. */
static CUresult end_of(CUmemorytype type, const void *host, CUdeviceptr device, uintptr_t *begin, enum side *side) {
    switch (type) {
    case CU_MEMORYTYPE_HOST: *begin = (uintptr_t)host; *side = HOST; return CUDA_SUCCESS;
    case CU_MEMORYTYPE_DEVICE: *begin = (uintptr_t)device; *side = DEVICE; return CUDA_SUCCESS;
    case CU_MEMORYTYPE_UNIFIED: *begin = (uintptr_t)device; *side = EITHER; return CUDA_SUCCESS;
    case CU_MEMORYTYPE_ARRAY: return CUDA_ERROR_NOT_SUPPORTED;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult copy_box(CUstream stream, const CUDA_MEMCPY3D *plan, bool wait) {
    CHECK_DRIVER();
    if (!plan)
        return CUDA_ERROR_INVALID_VALUE;
    struct box box = {.width = plan->WidthInBytes, .height = plan->Height, .depth = plan->Depth};
    box.to_pitch = plan->dstPitch ? plan->dstPitch : plan->dstXInBytes + plan->WidthInBytes;
    box.from_pitch = plan->srcPitch ? plan->srcPitch : plan->srcXInBytes + plan->WidthInBytes;
    box.to_slice = box.to_pitch * (plan->dstHeight ? plan->dstHeight : plan->dstY + plan->Height);
    box.from_slice = box.from_pitch * (plan->srcHeight ? plan->srcHeight : plan->srcY + plan->Height);
    CUresult result = end_of(plan->dstMemoryType, plan->dstHost, plan->dstDevice, &box.to, &box.to_side);
    if (result == CUDA_SUCCESS)
        result = end_of(plan->srcMemoryType, plan->srcHost, plan->srcDevice, &box.from, &box.from_side);
    if (result != CUDA_SUCCESS)
        return result;
    if ((plan->Height > 1 || plan->Depth > 1) &&
        (box.to_pitch < plan->dstXInBytes + plan->WidthInBytes || box.from_pitch < plan->srcXInBytes + plan->WidthInBytes))
        return CUDA_ERROR_INVALID_VALUE;
    box.to += plan->dstZ * box.to_slice + plan->dstY * box.to_pitch + plan->dstXInBytes;
    box.from += plan->srcZ * box.from_slice + plan->srcY * box.from_pitch + plan->srcXInBytes;
    return copy(stream, &box, wait);
}

static CUresult copy_plane(CUstream stream, const CUDA_MEMCPY2D *plan, bool wait) {
    if (!plan)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D box = {
        .srcXInBytes = plan->srcXInBytes,
        .srcY = plan->srcY,
        .srcMemoryType = plan->srcMemoryType,
        .srcHost = plan->srcHost,
        .srcDevice = plan->srcDevice,
        .srcPitch = plan->srcPitch,
        .dstXInBytes = plan->dstXInBytes,
        .dstY = plan->dstY,
        .dstMemoryType = plan->dstMemoryType,
        .dstHost = plan->dstHost,
        .dstDevice = plan->dstDevice,
        .dstPitch = plan->dstPitch,
        .WidthInBytes = plan->WidthInBytes,
        .Height = plan->Height,
        .Depth = 1,
    };
    return copy_box(stream, &box, wait);
}

static CUresult do_cuMemcpy2D_v2(CUstream stream, const CUDA_MEMCPY2D *plan) { return copy_plane(stream, plan, true); }
EXPORT_PTDS(cuMemcpy2D_v2, (const CUDA_MEMCPY2D *pCopy), pCopy)
static CUresult do_cuMemcpy2DUnaligned_v2(CUstream stream, const CUDA_MEMCPY2D *plan) {
    return copy_plane(stream, plan, true);
}
EXPORT_PTDS(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D *pCopy), pCopy)
static CUresult do_cuMemcpy3D_v2(CUstream stream, const CUDA_MEMCPY3D *plan) { return copy_box(stream, plan, true); }
EXPORT_PTDS(cuMemcpy3D_v2, (const CUDA_MEMCPY3D *pCopy), pCopy)
static CUresult do_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *plan, CUstream stream) {
    return copy_plane(stream, plan, false);
}
EXPORT_PTSZ(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *pCopy, CUstream hStream), pCopy, hStream)
static CUresult do_cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *plan, CUstream stream) {
    return copy_box(stream, plan, false);
}
EXPORT_PTSZ(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D *pCopy, CUstream hStream), pCopy, hStream)

/* ---- sets ---- */

static CUresult set(CUstream handle, CUdeviceptr to, size_t pitch, unsigned int value, size_t size, size_t width,
                    size_t height) {
    struct CUstream_st *stream;
    CUresult result = find_stream(handle, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (!width || !height)
        return CUDA_SUCCESS;
    bool device;
    if (to % size || width > SIZE_MAX / 2 / size / height)
        return CUDA_ERROR_INVALID_VALUE;
    result = check_range((uintptr_t)to, (height - 1) * pitch + width * size, DEVICE, &device);
    if (result == CUDA_SUCCESS)
        result = queue_error(stream->context);
    if (result == CUDA_SUCCESS)
        result = capture_check_legacy(stream);
    if (result != CUDA_SUCCESS)
        return result;
    for (size_t row = 0; row < height; row++) {
        char *line = (char *)(uintptr_t)to + row * pitch;
        if (size == 1)
            memset(line, (int)value, width);
        for (size_t index = 0; size > 1 && index < width; index++)
            memcpy(line + index * size, &value, size);
    }
    /* The host does not wait for a set. */
    return submit(stream, SIMGPU_SET, COPY_START_NS + width * size * height / DEVICE_BYTES_NS, false);
}

#define SETS(bits, type)                                                                                              \
    static CUresult do_cuMemsetD##bits##_v2(CUstream stream, CUdeviceptr to, type value, size_t count) {              \
        return set(stream, to, 0, value, bits / 8, count, 1);                                                         \
    }                                                                                                                 \
    EXPORT_PTDS(cuMemsetD##bits##_v2, (CUdeviceptr dstDevice, type value, size_t N), dstDevice, value, N)             \
    static CUresult do_cuMemsetD##bits##Async(CUdeviceptr to, type value, size_t count, CUstream stream) {            \
        return set(stream, to, 0, value, bits / 8, count, 1);                                                         \
    }                                                                                                                 \
    EXPORT_PTSZ(cuMemsetD##bits##Async, (CUdeviceptr dstDevice, type value, size_t N, CUstream hStream), dstDevice,   \
                value, N, hStream)                                                                                    \
    static CUresult do_cuMemsetD2D##bits##_v2(CUstream stream, CUdeviceptr to, size_t pitch, type value,              \
                                              size_t width, size_t height) {                                          \
        return set(stream, to, pitch, value, bits / 8, width, height);                                                \
    }                                                                                                                 \
    EXPORT_PTDS(cuMemsetD2D##bits##_v2,                                                                               \
                (CUdeviceptr dstDevice, size_t dstPitch, type value, size_t Width, size_t Height), dstDevice,         \
                dstPitch, value, Width, Height)                                                                       \
    static CUresult do_cuMemsetD2D##bits##Async(CUdeviceptr to, size_t pitch, type value, size_t width,               \
                                                size_t height, CUstream stream) {                                     \
        return set(stream, to, pitch, value, bits / 8, width, height);                                                \
    }                                                                                                                 \
    EXPORT_PTSZ(cuMemsetD2D##bits##Async,                                                                             \
                (CUdeviceptr dstDevice, size_t dstPitch, type value, size_t Width, size_t Height, CUstream hStream),  \
                dstDevice, dstPitch, value, Width, Height, hStream)

SETS(8, unsigned char)
SETS(16, unsigned short)
SETS(32, unsigned int)
