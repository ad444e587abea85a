/* Memory pools and stream-ordered allocation. A pool holds nothing back: what is freed is the GPU's again at once, and an
 * allocation is good from the call on. Both are earlier than a real driver has them, which no program can rely against. */
#include "driver/driver.h"

struct CUmemPoolHandle_st {
    enum mark mark;
    CUdevice device;
    bool is_default;
    uint64_t threshold;
    int reuse[3];
    int64_t used; /* bytes */
    int64_t used_high;
};

static struct object_pool objects = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct CUmemPoolHandle_st defaults[DEVICES];

void pool_count(struct CUmemPoolHandle_st *pool, int64_t bytes) {
    int64_t used = __atomic_add_fetch(&pool->used, bytes, __ATOMIC_RELAXED);
    int64_t high = __atomic_load_n(&pool->used_high, __ATOMIC_RELAXED);
    while (used > high &&
           !__atomic_compare_exchange_n(&pool->used_high, &high, used, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

static struct CUmemPoolHandle_st *default_pool(CUdevice device) {
    pthread_mutex_lock(&driver.lock);
    struct CUmemPoolHandle_st *pool = &defaults[device];
    if (!pool->mark)
        *pool = (struct CUmemPoolHandle_st){.mark = MARK_POOL, .device = device, .is_default = true, .reuse = {1, 1, 1}};
    pthread_mutex_unlock(&driver.lock);
    return pool;
}

static struct CUmemPoolHandle_st *current_pool(CUdevice device) {
    pthread_mutex_lock(&driver.lock);
    struct CUmemPoolHandle_st *pool = driver.pools[device];
    pthread_mutex_unlock(&driver.lock);
    return pool ? pool : default_pool(device);
}

#define POOL(pool)                             \
    do {                                       \
        CHECK_DRIVER();                        \
        if (!(pool) || (pool)->mark != MARK_POOL) \
            return CUDA_ERROR_INVALID_VALUE;   \
    } while (0)

EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev) {
    CHECK_DRIVER();
    if (!pool_out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!valid_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    *pool_out = default_pool(dev);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev) {
    CHECK_DRIVER();
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    if (!valid_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    *pool = current_pool(dev);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) {
    POOL(pool);
    if (!valid_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    if (pool->device != dev)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&driver.lock);
    driver.pools[dev] = pool;
    pthread_mutex_unlock(&driver.lock);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps) {
    CHECK_DRIVER();
    if (!pool || !poolProps || poolProps->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (poolProps->handleTypes != CU_MEM_HANDLE_TYPE_NONE || poolProps->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!valid_device(poolProps->location.id))
        return CUDA_ERROR_INVALID_DEVICE;
    struct CUmemPoolHandle_st *made = object_make(&objects, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *made = (struct CUmemPoolHandle_st){.mark = MARK_POOL, .device = poolProps->location.id, .reuse = {1, 1, 1}};
    *pool = made;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool) {
    POOL(pool);
    /* Allocations outlive their pool, and count in it to their end: then it cannot be used again for another. */
    if (pool->is_default)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&driver.lock);
    if (driver.pools[pool->device] == pool)
        driver.pools[pool->device] = NULL;
    pthread_mutex_unlock(&driver.lock);
    if (__atomic_load_n(&pool->used, __ATOMIC_RELAXED))
        pool->mark = 0;
    else
        object_drop(&objects, pool);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep) {
    (void)minBytesToKeep;
    POOL(pool);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value) {
    POOL(pool);
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    switch (attr) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: pool->reuse[attr - 1] = *(int *)value; return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: pool->threshold = *(cuuint64_t *)value; return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        /* The high marks can only be reset. */
        if (*(cuuint64_t *)value)
            return CUDA_ERROR_INVALID_VALUE;
        __atomic_store_n(&pool->used_high, __atomic_load_n(&pool->used, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
        return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value) {
    POOL(pool);
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    switch (attr) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: *(int *)value = pool->reuse[attr - 1]; return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: *(cuuint64_t *)value = pool->threshold; return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        *(cuuint64_t *)value = (cuuint64_t)__atomic_load_n(&pool->used, __ATOMIC_RELAXED);
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        *(cuuint64_t *)value = (cuuint64_t)__atomic_load_n(&pool->used_high, __ATOMIC_RELAXED);
        return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

EXPORT CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count) {
    POOL(pool);
    for (size_t index = 0; index < count; index++) {
        if (!map || map[index].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
            return CUDA_ERROR_INVALID_VALUE;
        /* No GPU reaches another's memory. */
        if (map[index].location.id != pool->device && map[index].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
            return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_SUCCESS;
}

/* ---- allocations in a stream's order ---- */

static CUresult allocate_async(CUdeviceptr *made, size_t size, struct CUmemPoolHandle_st *pool, CUstream handle) {
    struct CUstream_st *stream;
    CUresult result = find_stream(handle, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (!made)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (!pool)
        pool = current_pool(stream->context->device);
    if (pool->device != stream->context->device)
        return CUDA_ERROR_INVALID_VALUE;
    uintptr_t address;
    result = allocate(stream->context, size, ALLOCATION_DEVICE, 0, pool, &address);
    if (result == CUDA_SUCCESS)
        *made = address;
    return result;
}

static CUresult do_cuMemAllocAsync(CUdeviceptr *dptr, size_t size, CUstream stream) {
    return allocate_async(dptr, size, NULL, stream);
}
EXPORT_PTSZ(cuMemAllocAsync, (CUdeviceptr *dptr, size_t bytesize, CUstream hStream), dptr, bytesize, hStream)

static CUresult do_cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t size, CUmemoryPool pool, CUstream stream) {
    POOL(pool);
    return allocate_async(dptr, size, pool, stream);
}
EXPORT_PTSZ(cuMemAllocFromPoolAsync, (CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream), dptr,
            bytesize, pool, hStream)

static CUresult do_cuMemFreeAsync(CUdeviceptr dptr, CUstream handle) {
    struct CUstream_st *stream;
    CUresult result = find_stream(handle, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    return stream->capture ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : release((uintptr_t)dptr, ALLOCATION_DEVICE);
}
EXPORT_PTSZ(cuMemFreeAsync, (CUdeviceptr dptr, CUstream hStream), dptr, hStream)
