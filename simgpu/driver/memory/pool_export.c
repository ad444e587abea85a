/* Pools and pointers into them, for other processes. What is imported counts for the process whose pool it is. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "driver/allocation/allocation.h"
#include "driver/base/driver.h"
#include "driver/base/sizes.h"
#include "driver/physical/backing.h"
#include "driver/pool/pool.h"

/* In a page of the exporter's file, where the descriptor leads to. */
struct description {
    char magic[8];
    uint64_t machine_ns; /* when the machine was made: it is another one's elsewhere */
    uint64_t process;    /* id */
    uint64_t pool;       /* id */
    uint32_t gpu;
};

/* What the 64 bytes of an exported pointer hold. */
struct pointer {
    uint64_t process;
    uint64_t pool;
    uint64_t offset; /* in the exporter's file */
    uint64_t size;
    uint64_t rest[4];
};
_Static_assert(sizeof(struct pointer) == sizeof(CUmemPoolPtrExportData), "what the exported data hold");

static const char MAGIC[8] = {'S', 'I', 'M', 'G', 'P', 'U', 'M', 'P'};

static uint64_t own_id(void) { return driver.machine.shared->processes[driver.machine.slot].id; }

/* Writes the description, once. */
static CUresult describe(struct CUmemPoolHandle_st *pool) {
    if (pool->offset)
        return CUDA_SUCCESS;
    struct description description = {
        .machine_ns = driver.machine.shared->created_ns,
        .process = own_id(),
        .pool = pool->id,
        .gpu = driver.gpu_of[pool->device],
    };
    memcpy(description.magic, MAGIC, sizeof MAGIC);
    uint64_t offset = backing_take(PAGE);
    if (!offset || !backing_write(offset, &description, sizeof description))
        return CUDA_ERROR_OUT_OF_MEMORY;
    pool->offset = offset;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolExportToShareableHandle(void *handle_out, CUmemoryPool pool, CUmemAllocationHandleType handleType,
                                                 unsigned long long flags) {
    POOL(pool);
    if (!handle_out || flags || handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || !pool->exported || pool->fd >= 0)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&driver.lock);
    CUresult result = describe(pool);
    pthread_mutex_unlock(&driver.lock);
    int fd = result == CUDA_SUCCESS ? backing_export(-1, pool->offset) : -1;
    if (result == CUDA_SUCCESS && fd < 0)
        result = CUDA_ERROR_OPERATING_SYSTEM;
    if (result == CUDA_SUCCESS)
        *(int *)handle_out = fd;
    return result;
}

EXPORT CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle, CUmemAllocationHandleType handleType,
                                                   unsigned long long flags) {
    CHECK_DRIVER();
    struct description description;
    int fd = (int)(intptr_t)handle;
    if (!pool_out || flags || handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t place = backing_place(fd);
    if (!place || !backing_read(fd, place, &description, sizeof description) ||
        memcmp(description.magic, MAGIC, sizeof MAGIC) != 0 || description.machine_ns != driver.machine.shared->created_ns)
        return CUDA_ERROR_INVALID_VALUE;
    CUdevice device = device_of_gpu(description.gpu);
    if (device < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    struct CUmemPoolHandle_st *made = own < 0 ? NULL : pool_make(device);
    if (!made) {
        if (own >= 0)
            close(own);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->fd = own;
    made->of_process = description.process;
    made->of_pool = description.pool;
    *pool_out = made;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr) {
    CHECK_DRIVER();
    struct allocation found;
    if (!shareData_out || !find_allocation((uintptr_t)ptr, &found) || found.kind != ALLOCATION_DEVICE || !found.pool ||
        !found.pool->exported)
        return CUDA_ERROR_INVALID_VALUE;
    struct pointer pointer = {.process = own_id(), .pool = found.pool->id, .offset = found.offset, .size = found.size};
    memcpy(shareData_out, &pointer, sizeof pointer);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolImportPointer(CUdeviceptr *ptr_out, CUmemoryPool pool, CUmemPoolPtrExportData *shareData) {
    POOL(pool);
    struct pointer pointer;
    if (!ptr_out || !shareData || pool->fd < 0)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&pointer, shareData, sizeof pointer);
    if (pointer.process != pool->of_process || pointer.pool != pool->of_pool || !pointer.size)
        return CUDA_ERROR_INVALID_VALUE;
    size_t mapped = round_up(pointer.size, PAGE);
    struct allocation allocation = {
        .begin = backing_map(pool->fd, pointer.offset, mapped, 0, true),
        .size = pointer.size,
        .mapped = mapped,
        .kind = ALLOCATION_SHARED,
        .device = pool->device,
        .pool = pool,
    };
    if (!allocation.begin || !insert_allocation(&allocation))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *ptr_out = allocation.begin;
    return CUDA_SUCCESS;
}
