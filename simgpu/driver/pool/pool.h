/* Memory pools: what they hold of a GPU's memory, and what of it is in use. */
#ifndef SIMGPU_POOL_H
#define SIMGPU_POOL_H

#include "driver/base/driver.h"
#include "driver/base/objects.h"

struct CUmemPoolHandle_st {
    enum mark mark;
    CUdevice device;
    bool is_default;
    bool over;     /* destroyed; kept while something in it is in use */
    bool exported; /* handles to it may be made */
    int fd;        /* imported: the file of the process whose it is; −1: this one's */
    uint64_t id;
    uint64_t offset;              /* of its description in this process's file; 0: not exported yet */
    uint64_t of_process, of_pool; /* imported: ids */
    int reuse[3];
    uint32_t access;    /* a bit for each device that may use its memory */
    uint64_t threshold; /* what is reserved beyond is given back at a synchronisation */
    uint64_t most;      /* reserved; 0: no limit */
    uint64_t reserved, reserved_high;
    uint64_t used, used_high;
    /* Free memory may still be in use by what was queued before the last free. */
    const struct CUctx_st *freed_in; /* NULL: none since the last look */
    uint64_t freed_in_id;
    uint64_t freed_after;
    struct CUmemPoolHandle_st *next;
};

/* Returns when the handle is no pool's. */
#define POOL(pool)                           \
    do {                                     \
        CHECK_DRIVER();                      \
        if (!LIVES(pool, MARK_POOL))         \
            return CUDA_ERROR_INVALID_VALUE; \
    } while (0)

/* A device's pool when no other has been chosen, and the one that has. */
struct CUmemPoolHandle_st *default_pool(CUdevice device);
struct CUmemPoolHandle_st *current_pool(CUdevice device);
/* A new one, in the list of all; NULL: no memory. */
struct CUmemPoolHandle_st *pool_make(CUdevice device);

/* The memory of an allocation in a pool: false when the GPU has not that much. */
bool pool_take(struct CUmemPoolHandle_st *pool, size_t bytes);
/* It is the GPU's again at the next synchronisation, as far as the pool does not keep it. */
void pool_give(struct CUmemPoolHandle_st *pool, size_t bytes, const struct CUctx_st *context);
/* A context has been waited for. */
void pools_settle(void);
/* A device's primary context is over: its pools keep nothing that is free. */
void pools_end(CUdevice device);
CUdevice pool_device(const struct CUmemPoolHandle_st *pool);

#endif
