/* A pool's memory. It takes what it needs from the GPU in pieces, keeps what is freed, and gives back at a
 * synchronisation what is more than its threshold. */
#include "driver/pool/pool.h"
#include "driver/base/driver.h"
#include "driver/base/objects.h"
#include "driver/base/sizes.h"
#include "driver/context/context.h"

#include <unistd.h>

/* How much more a pool takes when it needs more (seen with drivers since 11.2: what is reserved is a multiple of it). */
#define PIECE ((uint64_t)32 << 20)

static struct object_pool objects = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct CUmemPoolHandle_st defaults[DEVICES];

/* For all pools and their numbers. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUmemPoolHandle_st *pools;
static uint64_t last_id;
static unsigned int unsettled; /* pools that something was freed in */

/* With the lock. */
static void enter(struct CUmemPoolHandle_st *pool, CUdevice device) {
    *pool = (struct CUmemPoolHandle_st){
        .mark = MARK_POOL, .device = device, .fd = -1, .id = ++last_id, .reuse = {1, 1, 1}, .access = 1u << device};
    pool->next = pools;
    pools = pool;
}

struct CUmemPoolHandle_st *default_pool(CUdevice device) {
    pthread_mutex_lock(&lock);
    struct CUmemPoolHandle_st *pool = &defaults[device];
    if (!pool->mark) {
        enter(pool, device);
        pool->is_default = true;
    }
    pthread_mutex_unlock(&lock);
    return pool;
}

struct CUmemPoolHandle_st *current_pool(CUdevice device) {
    pthread_mutex_lock(&driver.lock);
    struct CUmemPoolHandle_st *pool = driver.pools[device];
    pthread_mutex_unlock(&driver.lock);
    return pool ? pool : default_pool(device);
}

struct CUmemPoolHandle_st *pool_make(CUdevice device) {
    struct CUmemPoolHandle_st *pool = object_make(&objects, sizeof *pool);
    if (pool) {
        pthread_mutex_lock(&lock);
        enter(pool, device);
        pthread_mutex_unlock(&lock);
    }
    return pool;
}

/* With the lock. */
static void shrink(struct CUmemPoolHandle_st *pool, uint64_t keep) {
    keep = keep < pool->used ? pool->used : keep;
    keep = round_up(keep, GRANULARITY);
    if (pool->reserved <= keep)
        return;
    machine_give_own_memory(&driver.machine, driver.gpu_of[pool->device], pool->reserved - keep);
    pool->reserved = keep;
}

/* With the lock. */
static bool grow(struct CUmemPoolHandle_st *pool, uint64_t to) {
    uint32_t gpu = driver.gpu_of[pool->device];
    uint64_t more = round_up(to, PIECE) - pool->reserved;
    bool grown = (!pool->most || round_up(to, PIECE) <= pool->most) && machine_take_own_memory(&driver.machine, gpu, more);
    if (!grown) {
        more = round_up(to, GRANULARITY) - pool->reserved;
        grown = (!pool->most || to <= pool->most) && machine_take_own_memory(&driver.machine, gpu, more);
    }
    if (!grown)
        return false;
    pool->reserved += more;
    if (pool->reserved_high < pool->reserved)
        pool->reserved_high = pool->reserved;
    return true;
}

bool pool_take(struct CUmemPoolHandle_st *pool, size_t bytes) {
    pthread_mutex_lock(&lock);
    bool taken = pool->used + bytes <= pool->reserved || grow(pool, pool->used + bytes);
    if (taken)
        pool->used += bytes;
    if (pool->used_high < pool->used)
        pool->used_high = pool->used;
    pthread_mutex_unlock(&lock);
    return taken;
}

/* With the lock. */
static void drop(struct CUmemPoolHandle_st *pool) {
    struct CUmemPoolHandle_st **link = &pools;
    while (*link != pool)
        link = &(*link)->next;
    *link = pool->next;
    if (pool->fd >= 0)
        close(pool->fd);
    object_drop(&objects, pool);
}

/* With the lock. */
static void noted(struct CUmemPoolHandle_st *pool, bool freed) {
    if (freed != (pool->freed_in != NULL))
        __atomic_add_fetch(&unsettled, freed ? 1 : -1u, __ATOMIC_RELAXED);
}

void pool_give(struct CUmemPoolHandle_st *pool, size_t bytes, const struct CUctx_st *context) {
    pthread_mutex_lock(&lock);
    pool->used -= bytes;
    if (pool->over) {
        shrink(pool, 0);
        if (!pool->used)
            drop(pool);
    } else {
        noted(pool, true);
        pool->freed_in = context;
        pool->freed_in_id = context->id;
        pool->freed_after = load_u64(&context->shared->tail);
    }
    pthread_mutex_unlock(&lock);
}

/* Whether all that was queued before the last free is done. */
static bool is_settled(const struct CUmemPoolHandle_st *pool) {
    const struct CUctx_st *context = pool->freed_in;
    return context->mark != MARK_CONTEXT || context->id != pool->freed_in_id ||
           load_u64(&context->shared->completed) >= pool->freed_after;
}

void pools_settle(void) {
    if (!__atomic_load_n(&unsettled, __ATOMIC_RELAXED))
        return;
    pthread_mutex_lock(&lock);
    for (struct CUmemPoolHandle_st *pool = pools; pool; pool = pool->next) {
        if (!pool->freed_in || !is_settled(pool))
            continue;
        noted(pool, false);
        pool->freed_in = NULL;
        shrink(pool, pool->threshold);
    }
    pthread_mutex_unlock(&lock);
}

void pools_end(CUdevice device) {
    pthread_mutex_lock(&lock);
    for (struct CUmemPoolHandle_st *pool = pools; pool; pool = pool->next) {
        if (pool->device == device && pool->fd < 0)
            shrink(pool, 0);
    }
    pthread_mutex_unlock(&lock);
}

CUdevice pool_device(const struct CUmemPoolHandle_st *pool) { return pool->device; }

/* ---- what programs do with pools ---- */

EXPORT CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps) {
    CHECK_DRIVER();
    if (!pool || !poolProps || poolProps->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if ((poolProps->handleTypes & ~(unsigned int)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) ||
        poolProps->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!valid_device(poolProps->location.id))
        return CUDA_ERROR_INVALID_DEVICE;
    struct CUmemPoolHandle_st *made = pool_make(poolProps->location.id);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->exported = poolProps->handleTypes != CU_MEM_HANDLE_TYPE_NONE;
    made->most = poolProps->maxSize;
    *pool = made;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool) {
    POOL(pool);
    if (pool->is_default)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&driver.lock);
    if (driver.pools[pool->device] == pool)
        driver.pools[pool->device] = NULL;
    pthread_mutex_unlock(&driver.lock);
    pthread_mutex_lock(&lock);
    noted(pool, false);
    pool->freed_in = NULL;
    shrink(pool, 0);
    /* Allocations outlive their pool, and count in it to their end: then it cannot be used again for another. */
    pool->mark = 0;
    pool->over = true;
    if (!pool->used)
        drop(pool);
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep) {
    POOL(pool);
    pthread_mutex_lock(&lock);
    if (pool->fd < 0 && (!pool->freed_in || is_settled(pool)))
        shrink(pool, minBytesToKeep);
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

static CUresult set_attribute(struct CUmemPoolHandle_st *pool, CUmemPool_attribute attr, const void *value) {
    switch (attr) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: pool->reuse[attr - 1] = *(const int *)value; return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: pool->threshold = *(const cuuint64_t *)value; return CUDA_SUCCESS;
    /* The high marks can only be reset. */
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        if (*(const cuuint64_t *)value)
            return CUDA_ERROR_INVALID_VALUE;
        pool->reserved_high = pool->reserved;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        if (*(const cuuint64_t *)value)
            return CUDA_ERROR_INVALID_VALUE;
        pool->used_high = pool->used;
        return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult get_attribute(const struct CUmemPoolHandle_st *pool, CUmemPool_attribute attr, void *value) {
    switch (attr) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: *(int *)value = pool->reuse[attr - 1]; return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: *(cuuint64_t *)value = pool->threshold; return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: *(cuuint64_t *)value = pool->reserved; return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: *(cuuint64_t *)value = pool->reserved_high; return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *(cuuint64_t *)value = pool->used; return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: *(cuuint64_t *)value = pool->used_high; return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value) {
    POOL(pool);
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    CUresult result = set_attribute(pool, attr, value);
    pthread_mutex_unlock(&lock);
    return result;
}

EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value) {
    POOL(pool);
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    CUresult result = get_attribute(pool, attr, value);
    pthread_mutex_unlock(&lock);
    return result;
}
