/* What graphs allocate: an address that is known when the node is made, and memory that is there when it runs. */
#ifndef SIMGPU_GRAPH_MEMORY_H
#define SIMGPU_GRAPH_MEMORY_H

#include "driver/base/driver.h"
#include "driver/capture/work.h"
#include "driver/context/context.h"

struct graph_memory {
    uintptr_t address;
    size_t size;    /* as asked for */
    size_t charged; /* in whole blocks */
    CUdevice device;
    bool live;          /* allocated by a run, and not freed since */
    unsigned int users; /* nodes and executable graphs; the last one ends the address */
    unsigned int execs; /* executable graphs that allocate it */
};

/* What an executable graph needs while it runs. */
struct graph_backing {
    size_t bytes[DEVICES];         /* the most that it uses at a time, of each device */
    bool backed;                   /* they are taken */
    const struct CUctx_st *ran_in; /* NULL: it never ran */
    uint64_t ran_in_id;
    uint64_t ran_after; /* its last run is over when that context has completed so many entries */
    struct graph_backing *next;
};

CUresult graph_memory_make(CUdevice device, size_t size, struct graph_memory **made);
/* The allocation of a graph that is at the address. */
struct graph_memory *graph_memory_at(CUdeviceptr address);
void graph_memory_use(struct graph_memory *memory);
void graph_memory_drop(struct graph_memory *memory);
/* A run allocates it, or something frees it: CUDA_ERROR_INVALID_VALUE where it is (not) allocated already. */
CUresult graph_memory_allocate(struct graph_memory *memory);
CUresult graph_memory_free(struct graph_memory *memory);

/* Enters a new executable graph, takes its memory (once), notes a run, and ends it. */
void graph_backing_enter(struct graph_backing *backing);
CUresult graph_backing_take(struct graph_backing *backing);
void graph_backing_ran(struct graph_backing *backing, const struct CUctx_st *context);
void graph_backing_end(struct graph_backing *backing);

/* The work of a free, which may be in another graph than its allocation. */
CUresult graph_free_work(CUdeviceptr address, struct node_work *work);
/* Captured allocations and frees become nodes. */
CUresult capture_allocation(struct CUstream_st *stream, CUdevice device, size_t size, CUdeviceptr *made);
CUresult capture_free(struct CUstream_st *stream, CUdeviceptr address);

#endif
