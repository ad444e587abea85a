/* What is known about an address. */
#include <string.h>

#include "driver/allocation/allocation.h"
#include "driver/base/driver.h"
#include "driver/physical/physical.h"

/* Writes one attribute of a known address. */
static CUresult known(void *data, CUpointer_attribute attribute, uintptr_t address, const struct allocation *found) {
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: *(CUcontext *)data = found->context; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned int *)data = is_device_memory(found->kind) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)data = address; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (is_device_memory(found->kind) && found->kind != ALLOCATION_MANAGED)
            return CUDA_ERROR_INVALID_VALUE;
        *(void **)data = (void *)address;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: *(unsigned int *)data = 0; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: *(unsigned long long *)data = found->id; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(unsigned int *)data = found->kind == ALLOCATION_MANAGED; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)data = found->device; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        *(unsigned int *)data = found->kind == ALLOCATION_DEVICE && !found->pool;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: *(unsigned int *)data = 0; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *(CUdeviceptr *)data = found->begin; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)data = found->size; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED: *(unsigned int *)data = 1; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(unsigned long long *)data = found->physical ? found->physical->prop.requestedHandleTypes : 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        *(int *)data = found->kind != ALLOCATION_VIRTUAL || found->access ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                                          : CU_MEM_ACCESS_FLAGS_PROT_NONE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: *(CUmemoryPool *)data = found->pool; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: *(size_t *)data = found->size; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: *(CUdeviceptr *)data = found->begin; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        *(unsigned long long *)data = found->physical ? found->physical->handle : found->id;
        return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

static size_t size_of(CUpointer_attribute attribute) {
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: return sizeof(int);
    default: return sizeof(void *);
    }
}

EXPORT CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr) {
    CHECK_DRIVER();
    struct allocation found;
    if (!data || !find_allocation((uintptr_t)ptr, &found))
        return CUDA_ERROR_INVALID_VALUE;
    return known(data, attribute, (uintptr_t)ptr, &found);
}

/* For an address that is not known every answer is zero, and a device ordinal −2, as a real driver has it. */
EXPORT CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes, void **data,
                                       CUdeviceptr ptr) {
    CHECK_DRIVER();
    if (!numAttributes || !attributes || !data)
        return CUDA_ERROR_INVALID_VALUE;
    struct allocation found;
    bool is_known = find_allocation((uintptr_t)ptr, &found);
    for (unsigned int index = 0; index < numAttributes; index++) {
        if (!data[index] || attributes[index] < CU_POINTER_ATTRIBUTE_CONTEXT ||
            attributes[index] > CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID || attributes[index] == 5)
            return CUDA_ERROR_INVALID_VALUE;
        memset(data[index], 0, size_of(attributes[index]));
        if (is_known)
            known(data[index], attributes[index], (uintptr_t)ptr, &found);
        else if (attributes[index] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
            *(int *)data[index] = -2;
    }
    return CUDA_SUCCESS;
}
