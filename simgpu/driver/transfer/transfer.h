/* Copies and sets: which bytes go where, and how long that takes. */
#ifndef SIMGPU_TRANSFER_H
#define SIMGPU_TRANSFER_H

#include <stdbool.h>

#include "driver/capture/work.h"

/* Moves the bytes now. CUDA_ERROR_ILLEGAL_ADDRESS: what was on a device is no longer there. */
CUresult transfer_move(const struct transfer *transfer);

/* How long so many bytes take, within a device or over the bus. */
uint64_t transfer_duration_ns(size_t bytes, bool inside);

/* What the transfer is to a graph, of the calling thread's context. */
CUresult transfer_work(const struct transfer *transfer, struct node_work *work);
CUresult copy_work(const CUDA_MEMCPY3D *plan, struct node_work *work);

/* Checks a copy or a set and submits it to the stream; `wait`: the caller sees it done. */
CUresult transfer_submit(struct CUstream_st *stream, const struct transfer *transfer, bool wait);
CUresult copy_line(CUstream stream, uintptr_t to, enum side to_side, uintptr_t from, enum side from_side, size_t bytes,
                   bool wait);
/* Checks a copy of a box and submits it to the stream of this handle. */
CUresult copy_box(CUstream stream, const struct box *box, bool wait);

#endif
