/* Copies with attributes, one or many in a call. */
#include "driver/array/array.h"
#include "driver/base/driver.h"
#include "driver/context/context.h"
#include "driver/stream/stream.h"
#include "driver/transfer/transfer.h"

/* The legacy stream cannot have them ("CUDA Driver API", cuMemcpyBatchAsync). */
static CUresult find(CUstream handle, struct CUstream_st **stream) {
    CUresult result = find_stream(handle, stream, __func__);
    if (result == CUDA_SUCCESS && *stream == &(*stream)->context->legacy)
        result = CUDA_ERROR_INVALID_VALUE;
    return result;
}

static bool is_known(CUmemcpySrcAccessOrder order) {
    return order >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM && order <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

/* Each set of attributes holds from its index on to the next one's. */
static bool check_attributes(const CUmemcpyAttributes *attrs, const size_t *indices, size_t count, size_t copies) {
    if (!attrs || !indices || !count || count > copies || indices[0] != 0)
        return false;
    for (size_t index = 0; index < count; index++) {
        if (!is_known(attrs[index].srcAccessOrder) || indices[index] >= copies || (index && indices[index] <= indices[index - 1]))
            return false;
    }
    return true;
}

static CUresult copy_lines(const CUdeviceptr *dsts, const CUdeviceptr *srcs, const size_t *sizes, size_t count,
                           const CUmemcpyAttributes *attrs, const size_t *indices, size_t attributes, size_t *failed,
                           CUstream handle) {
    struct CUstream_st *stream;
    CUresult result = find(handle, &stream);
    if (failed)
        *failed = SIZE_MAX;
    if (result != CUDA_SUCCESS)
        return result;
    if (!dsts || !srcs || !sizes || !count || !check_attributes(attrs, indices, attributes, count))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t index = 0; result == CUDA_SUCCESS && index < count; index++) {
        struct box box = {.to = (uintptr_t)dsts[index],
                          .from = (uintptr_t)srcs[index],
                          .to_side = EITHER,
                          .from_side = EITHER,
                          .width = sizes[index],
                          .height = 1,
                          .depth = 1};
        result = sizes[index] ? transfer_submit(stream, &(struct transfer){.box = box}, false) : CUDA_ERROR_INVALID_VALUE;
        if (result != CUDA_SUCCESS && failed)
            *failed = index;
    }
    return result;
}

#define LINES(name, suffix, stream)                                                                                            \
    EXPORT CUresult name##suffix(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, CUmemcpyAttributes *attrs, \
                                 size_t *attrsIdxs, size_t numAttrs, size_t *failIdx, CUstream hStream) {                      \
        return copy_lines(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, failIdx, stream);                              \
    }                                                                                                                          \
    EXPORT CUresult name##_v2##suffix(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,                       \
                                      CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs, CUstream hStream) {       \
        return copy_lines(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, NULL, stream);                                 \
    }
LINES(cuMemcpyBatchAsync, , hStream)
LINES(cuMemcpyBatchAsync, _ptsz, hStream ? hStream : CU_STREAM_PER_THREAD)

static CUresult do_cuMemcpyWithAttributesAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, const CUmemcpyAttributes *attr,
                                               CUstream stream) {
    size_t first = 0;
    return copy_lines(&dst, &src, &size, 1, attr, &first, 1, NULL, stream);
}
EXPORT_PTSZ(cuMemcpyWithAttributesAsync,
            (CUdeviceptr dst, CUdeviceptr src, size_t size, CUmemcpyAttributes *attr, CUstream hStream), dst, src, size, attr,
            hStream)

/* ---- boxes ---- */

/* One end: its extent is in elements of the arrays that take part, or in bytes. */
static CUresult place(const CUmemcpy3DOperand *end, const CUextent3D *extent, size_t element, uintptr_t *begin, enum side *side,
                      size_t *pitch, size_t *slice) {
    if (end->type == CU_MEMCPY_OPERAND_TYPE_POINTER) {
        size_t row = end->op.ptr.rowLength ? end->op.ptr.rowLength : extent->width;
        size_t rows = end->op.ptr.layerHeight ? end->op.ptr.layerHeight : extent->height;
        if (row < extent->width || rows < extent->height)
            return CUDA_ERROR_INVALID_VALUE;
        *begin = (uintptr_t)end->op.ptr.ptr;
        *side = EITHER;
        *pitch = row * element;
        *slice = *pitch * rows;
        return CUDA_SUCCESS;
    }
    if (end->type != CU_MEMCPY_OPERAND_TYPE_ARRAY)
        return CUDA_ERROR_INVALID_VALUE;
    const struct CUarray_st *array = end->op.array.array;
    const CUoffset3D *offset = &end->op.array.offset;
    CUresult result = check_array(array);
    if (result != CUDA_SUCCESS)
        return result;
    size_t width = array->row / array->element;
    if (offset->x > width || extent->width > width - offset->x || offset->y > array->rows ||
        extent->height > array->rows - offset->y || offset->z > array->planes || extent->depth > array->planes - offset->z)
        return CUDA_ERROR_INVALID_VALUE;
    *side = DEVICE;
    *pitch = array->row;
    *slice = array->row * array->rows;
    *begin = array->begin + offset->z * *slice + offset->y * *pitch + offset->x * array->element;
    return CUDA_SUCCESS;
}

static size_t element_of(const CUDA_MEMCPY3D_BATCH_OP *op) {
    const CUmemcpy3DOperand *ends[2] = {&op->src, &op->dst};
    for (int index = 0; index < 2; index++) {
        if (ends[index]->type == CU_MEMCPY_OPERAND_TYPE_ARRAY && check_array(ends[index]->op.array.array) == CUDA_SUCCESS)
            return ends[index]->op.array.array->element;
    }
    return 1;
}

static CUresult copy_op(struct CUstream_st *stream, const CUDA_MEMCPY3D_BATCH_OP *op) {
    const size_t most = (size_t)1 << 47;
    size_t element = element_of(op);
    if (!is_known(op->srcAccessOrder) || op->extent.width > most / element)
        return CUDA_ERROR_INVALID_VALUE;
    struct box box = {.width = op->extent.width * element, .height = op->extent.height, .depth = op->extent.depth};
    CUresult result = place(&op->dst, &op->extent, element, &box.to, &box.to_side, &box.to_pitch, &box.to_slice);
    if (result == CUDA_SUCCESS)
        result = place(&op->src, &op->extent, element, &box.from, &box.from_side, &box.from_pitch, &box.from_slice);
    return result == CUDA_SUCCESS ? transfer_submit(stream, &(struct transfer){.box = box}, false) : result;
}

static CUresult copy_boxes(size_t count, const CUDA_MEMCPY3D_BATCH_OP *ops, size_t *failed, unsigned long long flags,
                           CUstream handle) {
    struct CUstream_st *stream;
    CUresult result = find(handle, &stream);
    if (failed)
        *failed = SIZE_MAX;
    if (result != CUDA_SUCCESS)
        return result;
    if (!count || !ops || flags)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t index = 0; result == CUDA_SUCCESS && index < count; index++) {
        result = copy_op(stream, &ops[index]);
        if (result != CUDA_SUCCESS && failed)
            *failed = index;
    }
    return result;
}

#define BOXES(suffix, stream)                                                                                                \
    EXPORT CUresult cuMemcpy3DBatchAsync##suffix(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, size_t *failIdx,             \
                                                 unsigned long long flags, CUstream hStream) {                               \
        return copy_boxes(numOps, opList, failIdx, flags, stream);                                                           \
    }                                                                                                                        \
    EXPORT CUresult cuMemcpy3DBatchAsync_v2##suffix(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, unsigned long long flags, \
                                                    CUstream hStream) {                                                      \
        return copy_boxes(numOps, opList, NULL, flags, stream);                                                              \
    }                                                                                                                        \
    EXPORT CUresult cuMemcpy3DWithAttributesAsync##suffix(CUDA_MEMCPY3D_BATCH_OP *op, unsigned long long flags,              \
                                                          CUstream hStream) {                                                \
        return copy_boxes(1, op, NULL, flags, stream);                                                                       \
    }
BOXES(, hStream)
BOXES(_ptsz, hStream ? hStream : CU_STREAM_PER_THREAD)
