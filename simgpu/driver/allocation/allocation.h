/* The table of what this process has allocated. */
#ifndef SIMGPU_ALLOCATION_H
#define SIMGPU_ALLOCATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver_api.h"

enum allocation_kind {
    ALLOCATION_DEVICE,
    ALLOCATION_MANAGED,
    ALLOCATION_HOST,
    ALLOCATION_REGISTERED,
    ALLOCATION_VIRTUAL,  /* a mapping that cuMemMap made */
    ALLOCATION_GRAPH,    /* what a graph allocates when it runs */
    ALLOCATION_IPC,      /* another process's allocation */
    ALLOCATION_EXTERNAL, /* a buffer in imported memory */
    ALLOCATION_SHARED    /* of another process's pool */
};

/* In the flags of device memory: at an address of 32 bits. */
#define ALLOCATE_LOW 0x10000u

struct physical;
struct graph_memory;

struct allocation {
    uintptr_t begin;
    size_t size;     /* as asked for */
    size_t charged;  /* of the GPU's memory: to the context, or to the pool */
    size_t mapped;   /* of address space; 0: not ours to unmap */
    uint64_t offset; /* in this process's memory file; 0: not in it */
    uint64_t id;
    enum allocation_kind kind;
    unsigned int flags;
    CUdevice device;
    struct CUctx_st *context; /* NULL: of none */
    struct CUmemPoolHandle_st *pool;
    struct physical *physical;  /* what a virtual or an external one maps */
    struct graph_memory *graph; /* of ALLOCATION_GRAPH */
    uint32_t access;            /* of a virtual one: a bit for each device that may use it */
};

/* Whether the device works on it, rather than on host memory that it can reach. */
static inline bool is_device_memory(enum allocation_kind kind) {
    return kind != ALLOCATION_HOST && kind != ALLOCATION_REGISTERED;
}

/* ---- the table ---- */

/* A copy of the allocation that holds the address. */
bool find_allocation(uintptr_t address, struct allocation *found);
/* Whether so many bytes from the address on lie in one allocation, or in mappings without a gap; `found` is the first. */
bool find_range(uintptr_t address, size_t size, struct allocation *found);
/* Whether an allocation has any of these bytes. */
bool anything_in(uintptr_t begin, size_t size);
/* Puts one in, whose id it sets: false when there is no memory for it. */
bool insert_allocation(struct allocation *allocation);
/* Takes out the one that begins there and is of that kind. */
bool remove_allocation(uintptr_t begin, enum allocation_kind kind, struct allocation *removed);
/* Changes who may use a mapping. */
void set_access(uintptr_t begin, uint32_t access);

/* A new one, of at least a byte, whatever state its context is in. */
CUresult allocation_make(struct CUctx_st *context, size_t size, enum allocation_kind kind, unsigned int flags,
                         struct CUmemPoolHandle_st *pool, uintptr_t *made);
CUresult release(uintptr_t begin, enum allocation_kind kind);
void allocations_end(struct CUctx_st *context);

#endif
