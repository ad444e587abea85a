#include "driver/stream/memory_op.h"
#include "driver/allocation/allocation.h"
#include "driver/base/driver.h"
#include "driver/capture/capture.h"
#include "driver/stream/host.h"
#include "driver/stream/stream.h"

#define NAP_NS 50000u

static uint64_t read_value(const struct memory_op *op) {
    if (op->bytes == 8)
        return load_u64((const uint64_t *)(uintptr_t)op->address);
    return load_u32((const uint32_t *)(uintptr_t)op->address);
}

static void write_value(const struct memory_op *op, uint64_t value) {
    if (op->bytes == 8)
        store_u64((uint64_t *)(uintptr_t)op->address, value);
    else
        store_u32((uint32_t *)(uintptr_t)op->address, (uint32_t)value);
    futex_wake_all((uint32_t *)(uintptr_t)op->address);
}

/* "At least" goes round: as a signed difference. */
static bool holds(const struct memory_op *op, uint64_t value) {
    switch (op->compare) {
    case CU_STREAM_WAIT_VALUE_EQ: return value == op->value;
    case CU_STREAM_WAIT_VALUE_AND: return (value & op->value) != 0;
    case CU_STREAM_WAIT_VALUE_NOR: return op->bytes == 8 ? ~(value | op->value) != 0 : (uint32_t)~(value | op->value) != 0;
    default: return op->bytes == 8 ? (int64_t)(value - op->value) >= 0 : (int32_t)(uint32_t)(value - op->value) >= 0;
    }
}

bool memory_op_try(const struct memory_op *op, uint32_t *seen) {
    uint64_t *word = (uint64_t *)(uintptr_t)op->address, one = 1, value;
    switch (op->kind) {
    case OP_WRITE: write_value(op, op->value); return true;
    case OP_ACQUIRE: *seen = 0; return __atomic_compare_exchange_n(word, &one, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    default:
        value = read_value(op);
        *seen = (uint32_t)value;
        return holds(op, value);
    }
}

void memory_op_nap(const struct memory_op *op, uint32_t seen) {
    futex_wait_for((uint32_t *)(uintptr_t)op->address, seen, NAP_NS);
}

/* ---- what programs call ---- */

static CUresult check(const struct memory_op *op, unsigned int flags) {
    struct allocation found;
    unsigned int known = op->kind == OP_WAIT ? CU_STREAM_WAIT_VALUE_NOR | CU_STREAM_WAIT_VALUE_FLUSH
                                             : (unsigned int)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;
    if ((flags & ~known) || op->address % op->bytes || !find_range((uintptr_t)op->address, op->bytes, &found))
        return CUDA_ERROR_INVALID_VALUE;
    return found.kind == ALLOCATION_VIRTUAL && !found.access ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult submit(struct CUstream_st *stream, const struct memory_op *op) {
    struct host_call call = {.op = *op};
    if (stream->capture)
        return capture_work(stream, &(struct node_work){.kind = SIMGPU_HOST, .call = call});
    return host_push(stream, &call);
}

static CUresult single(CUstream handle, enum memory_op_kind kind, CUdeviceptr address, uint64_t value, unsigned int bytes,
                       unsigned int flags) {
    struct CUstream_st *stream;
    CUresult result = find_stream(handle, &stream, __func__);
    if (result != CUDA_SUCCESS)
        return result;
    struct memory_op op = {kind, bytes, flags & CU_STREAM_WAIT_VALUE_NOR, address, value};
    result = check(&op, flags);
    if (result == CUDA_SUCCESS)
        result = capture_check_legacy(stream);
    return result == CUDA_SUCCESS ? submit(stream, &op) : result;
}

#define VALUE_OP(name, type, kind, bytes)                                                             \
    static CUresult do_##name(CUstream stream, CUdeviceptr address, type value, unsigned int flags) { \
        return single(stream, kind, address, value, bytes, flags);                                    \
    }                                                                                                 \
    EXPORT CUresult name(CUstream stream, CUdeviceptr addr, type value, unsigned int flags) {         \
        return do_##name(stream, addr, value, flags);                                                 \
    }                                                                                                 \
    EXPORT CUresult name##_ptsz(CUstream stream, CUdeviceptr addr, type value, unsigned int flags) {  \
        return do_##name(stream ? stream : CU_STREAM_PER_THREAD, addr, value, flags);                 \
    }

VALUE_OP(cuStreamWaitValue32, cuuint32_t, OP_WAIT, 4)
VALUE_OP(cuStreamWaitValue32_v2, cuuint32_t, OP_WAIT, 4)
VALUE_OP(cuStreamWaitValue64, cuuint64_t, OP_WAIT, 8)
VALUE_OP(cuStreamWaitValue64_v2, cuuint64_t, OP_WAIT, 8)
VALUE_OP(cuStreamWriteValue32, cuuint32_t, OP_WRITE, 4)
VALUE_OP(cuStreamWriteValue32_v2, cuuint32_t, OP_WRITE, 4)
VALUE_OP(cuStreamWriteValue64, cuuint64_t, OP_WRITE, 8)
VALUE_OP(cuStreamWriteValue64_v2, cuuint64_t, OP_WRITE, 8)

/* ---- several at once ---- */

enum { MOST_OPS = 256 };

/* False: an operation that is not one. One that only orders memory becomes OP_NONE. */
static bool translate(const CUstreamBatchMemOpParams *params, struct memory_op *op, unsigned int *flags) {
    bool wide = params->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 || params->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
    *flags = params->waitValue.flags;
    *op = (struct memory_op){
        .bytes = wide ? 8 : 4,
        .compare = *flags & CU_STREAM_WAIT_VALUE_NOR,
        .address = params->waitValue.address,
        .value = wide ? params->waitValue.value64 : params->waitValue.value,
    };
    switch (params->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64: op->kind = OP_WAIT; return true;
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64: op->kind = OP_WRITE; return true;
    case CU_STREAM_MEM_OP_BARRIER:
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: op->kind = OP_NONE; return true;
    default: return false;
    }
}

static CUresult batch(CUstream handle, unsigned int count, const CUstreamBatchMemOpParams *params, unsigned int flags) {
    struct CUstream_st *stream;
    CUresult result = find_stream(handle, &stream, __func__);
    if (result != CUDA_SUCCESS)
        return result;
    if (!params || !count || count > MOST_OPS || flags)
        return CUDA_ERROR_INVALID_VALUE;
    struct memory_op op;
    unsigned int op_flags;
    for (unsigned int index = 0; result == CUDA_SUCCESS && index < count; index++) {
        result = translate(&params[index], &op, &op_flags) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        if (result == CUDA_SUCCESS && op.kind != OP_NONE)
            result = check(&op, op_flags);
    }
    if (result == CUDA_SUCCESS)
        result = capture_check_legacy(stream);
    for (unsigned int index = 0; result == CUDA_SUCCESS && index < count; index++) {
        translate(&params[index], &op, &op_flags);
        if (op.kind != OP_NONE)
            result = submit(stream, &op);
    }
    return result;
}

#define BATCH(name)                                                                                                              \
    EXPORT CUresult name(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray, unsigned int flags) {        \
        return batch(stream, count, paramArray, flags);                                                                          \
    }                                                                                                                            \
    EXPORT CUresult name##_ptsz(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray, unsigned int flags) { \
        return batch(stream ? stream : CU_STREAM_PER_THREAD, count, paramArray, flags);                                          \
    }
BATCH(cuStreamBatchMemOp)
BATCH(cuStreamBatchMemOp_v2)
