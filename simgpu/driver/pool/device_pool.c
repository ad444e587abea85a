/* Which pool a device's allocations come from, and who may use a pool's memory. */
#include "driver/base/driver.h"
#include "driver/pool/pool.h"

static CUresult get(struct CUmemPoolHandle_st **pool, CUdevice device, struct CUmemPoolHandle_st *(*which)(CUdevice)) {
    CHECK_DRIVER();
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    if (!valid_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *pool = which(device);
    return CUDA_SUCCESS;
}

static CUresult set(CUdevice device, struct CUmemPoolHandle_st *pool) {
    POOL(pool);
    if (!valid_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (pool->device != device || pool->fd >= 0)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&driver.lock);
    driver.pools[device] = pool;
    pthread_mutex_unlock(&driver.lock);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev) { return get(pool_out, dev, default_pool); }
EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev) { return get(pool, dev, current_pool); }
EXPORT CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) { return set(dev, pool); }

/* By location: only devices have pools here, and those hold pinned memory. */
static CUresult device_at(const CUmemLocation *location, CUmemAllocationType type, CUdevice *device) {
    if (!location || type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (location->type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_NOT_SUPPORTED;
    *device = location->id;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location, CUmemAllocationType type) {
    CUdevice device;
    CUresult result = device_at(location, type, &device);
    return result == CUDA_SUCCESS ? get(pool_out, device, default_pool) : result;
}
EXPORT CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type) {
    CUdevice device;
    CUresult result = device_at(location, type, &device);
    return result == CUDA_SUCCESS ? get(pool, device, current_pool) : result;
}
EXPORT CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool) {
    CUdevice device;
    CUresult result = device_at(location, type, &device);
    return result == CUDA_SUCCESS ? set(device, pool) : result;
}

EXPORT CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count) {
    POOL(pool);
    uint32_t access = __atomic_load_n(&pool->access, __ATOMIC_RELAXED);
    for (size_t index = 0; index < count; index++) {
        if (!map || map[index].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
            return CUDA_ERROR_INVALID_VALUE;
        if (!valid_device(map[index].location.id))
            return CUDA_ERROR_INVALID_DEVICE;
        uint32_t bit = 1u << map[index].location.id;
        if (map[index].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE && map[index].location.id == pool->device)
            return CUDA_ERROR_INVALID_VALUE;
        access = map[index].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ? access & ~bit : access | bit;
    }
    __atomic_store_n(&pool->access, access, __ATOMIC_RELAXED);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool memPool, CUmemLocation *location) {
    POOL(memPool);
    if (!flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    if (!valid_device(location->id))
        return CUDA_ERROR_INVALID_DEVICE;
    bool may = __atomic_load_n(&memPool->access, __ATOMIC_RELAXED) & 1u << location->id;
    *flags = may ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}
