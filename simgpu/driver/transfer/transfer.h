/* Copies and sets: which bytes go where, and how long that takes. */
#ifndef SIMGPU_TRANSFER_H
#define SIMGPU_TRANSFER_H

#include "driver/memory/memory.h"

enum side { HOST, DEVICE, EITHER };

/* A box of bytes: rows of planes. */
struct box {
    uintptr_t to, from;
    enum side to_side, from_side;
    size_t to_pitch, from_pitch; /* bytes from row to row */
    size_t to_slice, from_slice; /* bytes from plane to plane */
    size_t width, height, depth;
};

/* What is moved when its time comes: a copy, or (element not 0) a set of elements of so many bytes. */
struct transfer {
    struct box box; /* of a set: `to`, with the width in bytes */
    unsigned int element, value;
};

/* Moves the bytes now. CUDA_ERROR_ILLEGAL_ADDRESS: what was on a device is no longer there. */
CUresult transfer_move(const struct transfer *transfer);

/* How long so many bytes take, within a device or over the bus. */
uint64_t transfer_duration_ns(size_t bytes, bool inside);

struct node_work;
/* What the transfer is to a graph, of the calling thread's context. */
CUresult transfer_work(const struct transfer *transfer, struct node_work *work);

/* Checks a copy or a set and submits it to the stream; `wait`: the caller sees it done. */
CUresult transfer_submit(struct CUstream_st *stream, const struct transfer *transfer, bool wait);
CUresult copy_line(CUstream stream, uintptr_t to, enum side to_side, uintptr_t from, enum side from_side, size_t bytes,
                   bool wait);
/* Checks a copy of a box and submits it to the stream of this handle. */
CUresult copy_box(CUstream stream, const struct box *box, bool wait);

#endif
