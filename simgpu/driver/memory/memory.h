/* What this process has allocated, and the memory behind it. */
#ifndef SIMGPU_MEMORY_H
#define SIMGPU_MEMORY_H

#include <stdbool.h>

#include "driver_api.h"

/* Allocations are aligned and counted in blocks of so much (a real driver: 256 or 512 bytes, from chunks of 2 MiB). */
#define BLOCK 512u
#define PAGE 4096u
/* What cuMemCreate, pools and graphs take is counted in pieces of so much (the granularity that drivers report). */
#define GRANULARITY ((size_t)2 << 20)

static inline size_t round_up(size_t size, size_t step) { return (size + step - 1) / step * step; }

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

CUresult allocate(struct CUctx_st *context, size_t size, enum allocation_kind kind, unsigned int flags,
                  struct CUmemPoolHandle_st *pool, uintptr_t *made);
CUresult release(uintptr_t begin, enum allocation_kind kind);
/* Frees what cuMemFree and cuMemFreeAsync free, of whatever kind it is. */
CUresult release_device(uintptr_t begin);
void allocations_end(struct CUctx_st *context);

/* ---- pools ---- */

/* The memory of an allocation in a pool: false when the GPU has not that much. */
bool pool_take(struct CUmemPoolHandle_st *pool, size_t bytes);
/* It is the GPU's again at the next synchronisation, as far as the pool does not keep it. */
void pool_give(struct CUmemPoolHandle_st *pool, size_t bytes, const struct CUctx_st *context);
/* A context has been waited for. */
void pools_settle(void);
/* A device's primary context is over: its pools keep nothing that is free. */
void pools_end(CUdevice device);
CUdevice pool_device(const struct CUmemPoolHandle_st *pool);

/* ---- the file that all of this process's device memory lies in ---- */

/* A range of the file, of whole pages; 0: there is none. Elsewhere `fd` −1 is this process's own file. */
uint64_t backing_take(size_t size);
void backing_give(int fd, uint64_t offset, size_t size);
/* Maps a range, at an address or (0) anywhere. 0: it cannot be. */
uintptr_t backing_map(int fd, uint64_t offset, size_t size, uintptr_t at, bool usable);
/* Maps a range of this process's file below 4 GiB. 0: there is no room. */
uintptr_t backing_map_low(uint64_t offset, size_t size);
/* Reads and writes parts that are mapped nowhere. */
bool backing_read(int fd, uint64_t offset, void *data, size_t size);
bool backing_write(uint64_t offset, const void *data, size_t size);
/* A descriptor that leads another process to a place of the file; −1: it cannot be. */
int backing_export(int fd, uint64_t offset);
/* The place that such a descriptor leads to; 0: it is none. */
uint64_t backing_place(int fd);
/* This process's own file; −1: none yet. */
int backing_file(void);

#endif
