/* Copies of planes and boxes of bytes, from and to host memory, device memory and arrays. */
#include "driver/array/array.h"
#include "driver/base/driver.h"
#include "driver/context/context.h"
#include "driver/transfer/transfer.h"

/* One end of a copy, as the programs describe it. */
struct end {
    CUmemorytype type;
    const void *host;
    CUdeviceptr device;
    const struct CUarray_st *array;
    size_t x, y, z; /* x in bytes */
    size_t pitch, height;
};

/* Where that end begins, on which side it is, and how far its rows and planes are apart. */
static CUresult place(const struct end *end, const CUDA_MEMCPY3D *plan, uintptr_t *begin, enum side *side, size_t *pitch,
                      size_t *slice) {
    *pitch = end->pitch ? end->pitch : end->x + plan->WidthInBytes;
    *slice = *pitch * (end->height ? end->height : end->y + plan->Height);
    *side = end->type == CU_MEMORYTYPE_HOST ? HOST : end->type == CU_MEMORYTYPE_UNIFIED ? EITHER : DEVICE;
    switch (end->type) {
    case CU_MEMORYTYPE_HOST: *begin = (uintptr_t)end->host; break;
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED: *begin = (uintptr_t)end->device; break;
    case CU_MEMORYTYPE_ARRAY: {
        const struct CUarray_st *array = end->array;
        CUresult result = check_array(array);
        if (result != CUDA_SUCCESS)
            return result;
        if (end->x > array->row || plan->WidthInBytes > array->row - end->x || end->y > array->rows ||
            plan->Height > array->rows - end->y || end->z > array->planes || plan->Depth > array->planes - end->z)
            return CUDA_ERROR_INVALID_VALUE;
        *begin = array->begin;
        *pitch = array->row;
        *slice = array->row * array->rows;
        break;
    }
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    if ((plan->Height > 1 || plan->Depth > 1) && *pitch < end->x + plan->WidthInBytes)
        return CUDA_ERROR_INVALID_VALUE;
    *begin += end->z * *slice + end->y * *pitch + end->x;
    return CUDA_SUCCESS;
}

static CUresult describe(const CUDA_MEMCPY3D *plan, struct box *box) {
    if (!plan)
        return CUDA_ERROR_INVALID_VALUE;
    struct end to = {plan->dstMemoryType, plan->dstHost, plan->dstDevice, plan->dstArray, plan->dstXInBytes,
                     plan->dstY,          plan->dstZ,    plan->dstPitch,  plan->dstHeight};
    struct end from = {plan->srcMemoryType, plan->srcHost, plan->srcDevice, plan->srcArray, plan->srcXInBytes,
                       plan->srcY,          plan->srcZ,    plan->srcPitch,  plan->srcHeight};
    *box = (struct box){.width = plan->WidthInBytes, .height = plan->Height, .depth = plan->Depth};
    CUresult result = place(&to, plan, &box->to, &box->to_side, &box->to_pitch, &box->to_slice);
    if (result == CUDA_SUCCESS)
        result = place(&from, plan, &box->from, &box->from_side, &box->from_pitch, &box->from_slice);
    return result;
}

static CUresult copy_3d(CUstream stream, const CUDA_MEMCPY3D *plan, bool wait) {
    CHECK_DRIVER();
    struct box box;
    CUresult result = describe(plan, &box);
    return result == CUDA_SUCCESS ? copy_box(stream, &box, wait) : result;
}

static CUresult copy_2d(CUstream stream, const CUDA_MEMCPY2D *plan, bool wait) {
    if (!plan)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D box = {
        .srcXInBytes = plan->srcXInBytes,
        .srcY = plan->srcY,
        .srcMemoryType = plan->srcMemoryType,
        .srcHost = plan->srcHost,
        .srcDevice = plan->srcDevice,
        .srcArray = plan->srcArray,
        .srcPitch = plan->srcPitch,
        .dstXInBytes = plan->dstXInBytes,
        .dstY = plan->dstY,
        .dstMemoryType = plan->dstMemoryType,
        .dstHost = plan->dstHost,
        .dstDevice = plan->dstDevice,
        .dstArray = plan->dstArray,
        .dstPitch = plan->dstPitch,
        .WidthInBytes = plan->WidthInBytes,
        .Height = plan->Height,
        .Depth = 1,
    };
    return copy_3d(stream, &box, wait);
}

static CUresult do_cuMemcpy2D_v2(CUstream stream, const CUDA_MEMCPY2D *plan) { return copy_2d(stream, plan, true); }
EXPORT_PTDS(cuMemcpy2D_v2, (const CUDA_MEMCPY2D *pCopy), pCopy)
static CUresult do_cuMemcpy2DUnaligned_v2(CUstream stream, const CUDA_MEMCPY2D *plan) { return copy_2d(stream, plan, true); }
EXPORT_PTDS(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D *pCopy), pCopy)
static CUresult do_cuMemcpy3D_v2(CUstream stream, const CUDA_MEMCPY3D *plan) { return copy_3d(stream, plan, true); }
EXPORT_PTDS(cuMemcpy3D_v2, (const CUDA_MEMCPY3D *pCopy), pCopy)
static CUresult do_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *plan, CUstream stream) { return copy_2d(stream, plan, false); }
EXPORT_PTSZ(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *pCopy, CUstream hStream), pCopy, hStream)
static CUresult do_cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *plan, CUstream stream) { return copy_3d(stream, plan, false); }
EXPORT_PTSZ(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D *pCopy, CUstream hStream), pCopy, hStream)

/* ---- between contexts ---- */

static CUresult copy_peer(CUstream stream, const CUDA_MEMCPY3D_PEER *plan) {
    CHECK_DRIVER();
    if (!plan)
        return CUDA_ERROR_INVALID_VALUE;
    if ((plan->srcContext && check_context(plan->srcContext, __func__) != CUDA_SUCCESS) ||
        (plan->dstContext && check_context(plan->dstContext, __func__) != CUDA_SUCCESS))
        return CUDA_ERROR_INVALID_CONTEXT;
    CUDA_MEMCPY3D box = {
        .srcXInBytes = plan->srcXInBytes,
        .srcY = plan->srcY,
        .srcZ = plan->srcZ,
        .srcMemoryType = plan->srcMemoryType,
        .srcHost = plan->srcHost,
        .srcDevice = plan->srcDevice,
        .srcArray = plan->srcArray,
        .srcPitch = plan->srcPitch,
        .srcHeight = plan->srcHeight,
        .dstXInBytes = plan->dstXInBytes,
        .dstY = plan->dstY,
        .dstZ = plan->dstZ,
        .dstMemoryType = plan->dstMemoryType,
        .dstHost = plan->dstHost,
        .dstDevice = plan->dstDevice,
        .dstArray = plan->dstArray,
        .dstPitch = plan->dstPitch,
        .dstHeight = plan->dstHeight,
        .WidthInBytes = plan->WidthInBytes,
        .Height = plan->Height,
        .Depth = plan->Depth,
    };
    return copy_3d(stream, &box, false);
}

static CUresult do_cuMemcpy3DPeer(CUstream stream, const CUDA_MEMCPY3D_PEER *plan) { return copy_peer(stream, plan); }
EXPORT_PTDS(cuMemcpy3DPeer, (const CUDA_MEMCPY3D_PEER *pCopy), pCopy)
static CUresult do_cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *plan, CUstream stream) { return copy_peer(stream, plan); }
EXPORT_PTSZ(cuMemcpy3DPeerAsync, (const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream), pCopy, hStream)

/* ---- as a node of a graph ---- */

CUresult copy_work(const CUDA_MEMCPY3D *plan, struct node_work *work) {
    struct transfer transfer = {0};
    CUresult result = describe(plan, &transfer.box);
    return result == CUDA_SUCCESS ? transfer_work(&transfer, work) : result;
}
