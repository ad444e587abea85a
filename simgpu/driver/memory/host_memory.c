/* Host memory that devices can reach: allocated here, or registered. */
#include "driver/allocation/allocation.h"
#include "driver/base/driver.h"
#include "driver/context/context.h"
#include "driver/memory/memory.h"

static CUresult allocate_host(void **made, size_t size, unsigned int flags) {
    CURRENT(context);
    const unsigned int known = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    if (!made || (flags & ~known))
        return CUDA_ERROR_INVALID_VALUE;
    uintptr_t address;
    CUresult result = allocate(context, size, ALLOCATION_HOST, flags, NULL, &address);
    if (result == CUDA_SUCCESS)
        *made = (void *)address;
    return result;
}

EXPORT CUresult cuMemAllocHost_v2(void **pp, size_t bytesize) { return allocate_host(pp, bytesize, 0); }
EXPORT CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags) { return allocate_host(pp, bytesize, Flags); }

EXPORT CUresult cuMemFreeHost(void *p) {
    CURRENT(context);
    (void)context;
    return p ? release((uintptr_t)p, ALLOCATION_HOST) : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags) {
    CURRENT(context);
    struct allocation other;
    if (!p || !bytesize)
        return CUDA_ERROR_INVALID_VALUE;
    if (find_allocation((uintptr_t)p, &other) || find_allocation((uintptr_t)p + bytesize - 1, &other))
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    struct allocation allocation = {.begin = (uintptr_t)p,
                                    .size = bytesize,
                                    .kind = ALLOCATION_REGISTERED,
                                    .flags = Flags,
                                    .device = context->device,
                                    .context = context};
    return insert_allocation(&allocation) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuMemHostUnregister(void *p) {
    CURRENT(context);
    (void)context;
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = release((uintptr_t)p, ALLOCATION_REGISTERED);
    return result == CUDA_SUCCESS ? result : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

static CUresult find_host(void *address, struct allocation *found) {
    CURRENT(context);
    (void)context;
    return find_allocation((uintptr_t)address, found) && !is_device_memory(found->kind) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags) {
    struct allocation allocation;
    CUresult result = find_host(p, &allocation);
    if (result == CUDA_SUCCESS && (!pdptr || Flags))
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *pdptr = (uintptr_t)p;
    return result;
}

EXPORT CUresult cuMemHostGetFlags(unsigned int *pFlags, void *p) {
    struct allocation allocation;
    CUresult result = find_host(p, &allocation);
    if (result == CUDA_SUCCESS && !pFlags)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *pFlags = allocation.flags | CU_MEMHOSTALLOC_DEVICEMAP;
    return result;
}
