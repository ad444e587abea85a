/* What is put into a stream or into a graph, as data alone. */
#ifndef SIMGPU_WORK_H
#define SIMGPU_WORK_H

#include <stddef.h>
#include <stdint.h>

#include "driver_api.h"

/* A wait for a value in memory, or a write of one. */
enum memory_op_kind { OP_NONE, OP_WAIT, OP_WRITE, OP_ACQUIRE /* waits for 1 and makes it 0 */ };

struct memory_op {
    enum memory_op_kind kind;
    unsigned int bytes;   /* 4 or 8 */
    unsigned int compare; /* CUstreamWaitValue_flags */
    uint64_t address;
    uint64_t value;
};

/* What a thread of the host does in the stream's order. */
struct host_call {
    CUhostFn function;
    CUstreamCallback callback; /* or this one */
    struct memory_op op;       /* or this, where its kind is not OP_NONE */
    void *data;
    CUstream stream; /* as the callback is told */
};

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

/* What a node of a graph does. */
struct node_work {
    uint32_t kind; /* enum simgpu_kind or what follows; 0: nothing */
    uint64_t duration_ns;
    uint32_t place; /* enum simgpu_place */
    struct host_call call;
    struct transfer transfer;    /* of a copy or a set */
    struct graph_memory *memory; /* of an allocation or a free */
};
enum { WORK_ALLOCATE = 100, WORK_FREE = 101 };

#endif
