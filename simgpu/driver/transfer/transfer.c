/* Copies and sets. The bytes move when the call is made (in a graph: when it is launched): kernels here write no memory,
 * so that in the order of the calls is the order of the streams. The time that it takes is queued like a kernel's. */
#include "driver/transfer/transfer.h"
#include "driver/allocation/allocation.h"
#include "driver/base/driver.h"
#include "driver/base/objects.h"
#include "driver/base/pace.h"
#include "driver/capture/capture.h"
#include "driver/context/context.h"
#include "driver/stream/queue.h"
#include "driver/stream/stream.h"

#include <string.h>

/* A copy's own time and its bytes for each nanosecond: PCIe 3.0 x16 gives about 12 GB/s; device memory several hundred. */
#define COPY_START_NS 1000u
#define BUS_BYTES_NS 12u
#define DEVICE_BYTES_NS 400u
#define MOST_BYTES ((size_t)1 << 47)

uint64_t transfer_duration_ns(size_t bytes, bool inside) {
    return COPY_START_NS + bytes / (inside ? DEVICE_BYTES_NS : BUS_BYTES_NS);
}

/* Bytes from the first to the last; SIZE_MAX / 2: more than there can be. */
static size_t extent(size_t pitch, size_t slice, const struct box *box) {
    size_t planes, rows;
    if (__builtin_mul_overflow(box->depth - 1, slice, &planes) || __builtin_mul_overflow(box->height - 1, pitch, &rows) ||
        planes > MOST_BYTES || rows > MOST_BYTES)
        return SIZE_MAX / 2;
    return planes + rows + box->width;
}

/* Whose memory one end of a copy is. */
struct part {
    CUdevice device;          /* −1: the host's */
    struct CUctx_st *context; /* NULL: of none */
};

/* Whether so many bytes can be read or written there, by a device or by the host. */
static CUresult check_range(uintptr_t address, size_t size, enum side side, struct part *part) {
    struct allocation found;
    bool known = find_range(address, size, &found);
    *part = (struct part){.device = -1};
    if (known && is_device_memory(found.kind))
        *part = (struct part){.device = found.device, .context = found.context};
    if (known && found.kind == ALLOCATION_VIRTUAL && !found.access)
        return CUDA_ERROR_INVALID_VALUE;
    /* Host memory that the device may use passes for the device's too. */
    if (side == DEVICE && !known)
        return CUDA_ERROR_INVALID_VALUE;
    return address || !size ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- moving ---- */

static void copy_bytes(const struct box *box) {
    for (size_t plane = 0; plane < box->depth; plane++) {
        for (size_t row = 0; row < box->height; row++)
            memmove((char *)box->to + plane * box->to_slice + row * box->to_pitch,
                    (const char *)box->from + plane * box->from_slice + row * box->from_pitch, box->width);
    }
}

static void set_bytes(const struct transfer *transfer) {
    const struct box *box = &transfer->box;
    for (size_t row = 0; row < box->height; row++) {
        char *line = (char *)box->to + row * box->to_pitch;
        if (transfer->element == 1)
            memset(line, (int)transfer->value, box->width);
        for (size_t at = 0; transfer->element > 1 && at < box->width; at += transfer->element)
            memcpy(line + at, &transfer->value, transfer->element);
    }
}

CUresult transfer_move(const struct transfer *transfer) {
    const struct box *box = &transfer->box;
    struct part part;
    if (check_range(box->to, extent(box->to_pitch, box->to_slice, box), box->to_side, &part) != CUDA_SUCCESS)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (transfer->element) {
        set_bytes(transfer);
        return CUDA_SUCCESS;
    }
    if (check_range(box->from, extent(box->from_pitch, box->from_slice, box), box->from_side, &part) != CUDA_SUCCESS)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    copy_bytes(box);
    return CUDA_SUCCESS;
}

/* ---- submitting ---- */

/* Another device that takes part is as busy with it: the same goes into the queue of a context there. */
static void occupy(const struct part *part, const struct CUstream_st *stream, uint64_t duration_ns) {
    struct CUctx_st *peer = part->context;
    if (part->device < 0 || part->device == stream->context->device)
        return;
    if (!peer) {
        pthread_mutex_lock(&driver.lock);
        peer = driver.primary[part->device];
        pthread_mutex_unlock(&driver.lock);
    }
    if (peer && peer->mark == MARK_CONTEXT)
        queue_push(&peer->legacy, SIMGPU_COPY, duration_ns, SIMGPU_PLACE_UP, NULL);
}

static CUresult submit(struct CUstream_st *stream, const struct node_work *work, const struct part parts[2], bool wait) {
    if (stream->capture)
        return wait ? capture_break(stream) : capture_work(stream, work);
    pace_spend(pace_now()->launch_ns);
    CUresult result = queue_push(stream, work->kind, work->duration_ns, work->place, NULL);
    if (result != CUDA_SUCCESS)
        return result;
    occupy(&parts[0], stream, work->duration_ns);
    if (parts[1].device != parts[0].device)
        occupy(&parts[1], stream, work->duration_ns);
    if (!wait)
        return CUDA_SUCCESS;
    return queue_wait(stream->context, stream_after(stream), stream->context->flags & CU_CTX_SCHED_BLOCKING_SYNC);
}

/* Checks it, and says what work it is and whose memory. */
static CUresult plan(const struct transfer *transfer, struct node_work *work, struct part parts[2]) {
    const struct box *box = &transfer->box;
    /* No address space holds more; sums of sizes stay far from their end. */
    if (box->width > MOST_BYTES || box->height > MOST_BYTES / box->width || box->depth > MOST_BYTES / box->width / box->height)
        return CUDA_ERROR_INVALID_VALUE;
    size_t bytes = box->width * box->height * box->depth;
    parts[0] = parts[1] = (struct part){.device = -1};
    CUresult result = check_range(box->to, extent(box->to_pitch, box->to_slice, box), box->to_side, &parts[0]);
    if (result == CUDA_SUCCESS && !transfer->element)
        result = check_range(box->from, extent(box->from_pitch, box->from_slice, box), box->from_side, &parts[1]);
    /* Within one device it is quick; what crosses the bus is not. */
    bool inside = transfer->element || (parts[0].device >= 0 && parts[0].device == parts[1].device);
    *work = (struct node_work){
        .kind = transfer->element ? SIMGPU_SET : SIMGPU_COPY,
        .duration_ns = transfer_duration_ns(bytes, inside),
        /* Within a device its multiprocessors are at it. */
        .place = inside                 ? SIMGPU_PLACE_ALL
                 : parts[0].device >= 0 ? SIMGPU_PLACE_UP
                                        : SIMGPU_PLACE_DOWN,
        .transfer = *transfer,
    };
    return result;
}

static bool is_empty(const struct box *box) { return !box->width || !box->height || !box->depth; }

CUresult transfer_work(const struct transfer *transfer, struct node_work *work) {
    struct part parts[2];
    *work = (struct node_work){0};
    return is_empty(&transfer->box) ? CUDA_SUCCESS : plan(transfer, work, parts);
}

CUresult transfer_submit(struct CUstream_st *stream, const struct transfer *transfer, bool wait) {
    struct node_work work;
    struct part parts[2];
    if (is_empty(&transfer->box))
        return CUDA_SUCCESS;
    CUresult result = plan(transfer, &work, parts);
    if (result == CUDA_SUCCESS)
        result = queue_error(stream->context);
    if (result == CUDA_SUCCESS)
        result = capture_check_legacy(stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (!stream->capture && transfer->element)
        set_bytes(transfer);
    else if (!stream->capture)
        copy_bytes(&transfer->box);
    return submit(stream, &work, parts, wait);
}

CUresult copy_box(CUstream handle, const struct box *box, bool wait) {
    struct CUstream_st *stream;
    CUresult result = find_stream(handle, &stream, __func__);
    return result == CUDA_SUCCESS ? transfer_submit(stream, &(struct transfer){.box = *box}, wait) : result;
}

CUresult copy_line(CUstream stream, uintptr_t to, enum side to_side, uintptr_t from, enum side from_side, size_t bytes,
                   bool wait) {
    struct box box = {
        .to = to, .from = from, .to_side = to_side, .from_side = from_side, .width = bytes, .height = 1, .depth = 1};
    return copy_box(stream, &box, wait);
}
