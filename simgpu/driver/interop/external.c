/* Memory that came as a descriptor: here, of what cuMemCreate made in this process or another. */
#include <unistd.h>

#include "driver/allocation/allocation.h"
#include "driver/base/driver.h"
#include "driver/base/objects.h"
#include "driver/base/sizes.h"
#include "driver/context/context.h"
#include "driver/physical/backing.h"
#include "driver/physical/physical.h"

struct CUextMemory_st {
    enum mark mark;
    CUmemGenericAllocationHandle handle;
    size_t size;
};

static struct object_pool objects = {.lock = PTHREAD_MUTEX_INITIALIZER};

EXPORT CUresult cuImportExternalMemory(CUexternalMemory *extMem_out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *memHandleDesc) {
    CURRENT(context);
    (void)context;
    if (!extMem_out || !memHandleDesc || !memHandleDesc->size)
        return CUDA_ERROR_INVALID_VALUE;
    if (memHandleDesc->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUmemGenericAllocationHandle handle;
    CUresult result = physical_import(memHandleDesc->handle.fd, &handle);
    if (result != CUDA_SUCCESS)
        return result == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_OPERATING_SYSTEM : result;
    struct physical *physical = physical_use(handle, __func__);
    bool enough = memHandleDesc->size <= physical->size;
    physical_unmapped(physical);
    struct CUextMemory_st *made = enough ? object_make(&objects, sizeof *made) : NULL;
    if (!made) {
        physical_release(handle);
        return enough ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
    }
    *made = (struct CUextMemory_st){.mark = MARK_EXTERNAL_MEMORY, .handle = handle, .size = memHandleDesc->size};
    /* From here on the descriptor is the driver's. */
    close(memHandleDesc->handle.fd);
    *extMem_out = made;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *devPtr, CUexternalMemory extMem,
                                                const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *bufferDesc) {
    CURRENT(context);
    if (!LIVES(extMem, MARK_EXTERNAL_MEMORY))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!devPtr || !bufferDesc || bufferDesc->flags || !bufferDesc->size || bufferDesc->offset % PAGE ||
        bufferDesc->offset > extMem->size || bufferDesc->size > extMem->size - bufferDesc->offset)
        return CUDA_ERROR_INVALID_VALUE;
    struct physical *physical = physical_use(extMem->handle, __func__);
    if (!physical)
        return CUDA_ERROR_INVALID_HANDLE;
    size_t mapped = round_up(bufferDesc->size, PAGE);
    struct allocation allocation = {
        .begin = backing_map(physical->fd, physical->offset + bufferDesc->offset, mapped, 0, true),
        .size = bufferDesc->size,
        .mapped = mapped,
        .kind = ALLOCATION_EXTERNAL,
        .device = context->device,
        .context = context,
        .physical = physical,
    };
    if (!allocation.begin || !insert_allocation(&allocation)) {
        physical_unmapped(physical);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *devPtr = allocation.begin;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDestroyExternalMemory(CUexternalMemory extMem) {
    CURRENT(context);
    (void)context;
    if (!LIVES(extMem, MARK_EXTERNAL_MEMORY))
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = physical_release(extMem->handle);
    object_drop(&objects, extMem);
    return result;
}
