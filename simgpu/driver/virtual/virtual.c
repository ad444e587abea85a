/* Address ranges, and the physical memory that is mapped into them. */
#include <stdlib.h>
#include <sys/mman.h>

#include "driver/allocation/allocation.h"
#include "driver/base/driver.h"
#include "driver/base/sizes.h"
#include "driver/physical/backing.h"
#include "driver/physical/physical.h"

struct range {
    uintptr_t begin;
    size_t size;
    struct range *next;
};

/* What is reserved. The lock also keeps mappings as they are while somebody looks at several. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range *ranges;

/* The reservation that holds all of this. Under the lock. */
static struct range *find(uintptr_t begin, size_t size) {
    for (struct range *range = ranges; range; range = range->next) {
        if (begin >= range->begin && size <= range->size && begin - range->begin <= range->size - size)
            return range;
    }
    return NULL;
}

/* Address space that nobody can use, at an address of that alignment. */
static uintptr_t reserve(size_t size, size_t alignment) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *memory = mmap(NULL, size + alignment, PROT_NONE, flags, -1, 0);
    if (memory == MAP_FAILED)
        return 0;
    uintptr_t begin = (uintptr_t)memory, aligned = round_up(begin, alignment);
    if (aligned > begin)
        munmap(memory, aligned - begin);
    if (aligned < begin + alignment)
        munmap((void *)(aligned + size), begin + alignment - aligned);
    return aligned;
}

EXPORT CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr, unsigned long long flags) {
    CHECK_DRIVER();
    (void)addr; /* a wish, which may stay one */
    if (!ptr || !size || size % PAGE || (alignment & (alignment - 1)) || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (alignment < GRANULARITY)
        alignment = GRANULARITY;
    struct range *range = calloc(1, sizeof *range);
    uintptr_t begin = range && size < SIZE_MAX / 4 && alignment < SIZE_MAX / 4 ? reserve(size, alignment) : 0;
    if (!begin) {
        free(range);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    range->begin = begin;
    range->size = size;
    pthread_mutex_lock(&lock);
    range->next = ranges;
    ranges = range;
    pthread_mutex_unlock(&lock);
    *ptr = begin;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size) {
    CHECK_DRIVER();
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    for (struct range **link = &ranges; *link; link = &(*link)->next) {
        struct range *range = *link;
        if (range->begin != (uintptr_t)ptr || range->size != size || anything_in(range->begin, size))
            continue;
        *link = range->next;
        munmap((void *)range->begin, size);
        free(range);
        result = CUDA_SUCCESS;
        break;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

/* ---- mappings ---- */

EXPORT CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                         unsigned long long flags) {
    CHECK_DRIVER();
    uintptr_t begin = (uintptr_t)ptr;
    if (!size || size % GRANULARITY || begin % GRANULARITY || offset || flags)
        return CUDA_ERROR_INVALID_VALUE;
    struct physical *physical = physical_use(handle, __func__);
    if (!physical)
        return CUDA_ERROR_INVALID_VALUE;
    struct allocation mapping = {
        .begin = begin,
        .size = size,
        .kind = ALLOCATION_VIRTUAL,
        .device = physical->device,
        .physical = physical,
    };
    pthread_mutex_lock(&lock);
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    if (size <= physical->size && find(begin, size) && !anything_in(begin, size)) {
        bool mapped = backing_map(physical->fd, physical->offset, size, begin, false) && insert_allocation(&mapping);
        result = mapped ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_unlock(&lock);
    if (result != CUDA_SUCCESS)
        physical_unmapped(physical);
    return result;
}

/* Whether the bytes are exactly those of mappings side by side. Under the lock. */
static bool whole_mappings(uintptr_t begin, size_t size) {
    struct allocation found;
    uintptr_t at = begin;
    while (at < begin + size) {
        if (!find_allocation(at, &found) || found.kind != ALLOCATION_VIRTUAL || found.begin != at)
            return false;
        at += found.size;
    }
    return at == begin + size && size;
}

EXPORT CUresult cuMemUnmap(CUdeviceptr ptr, size_t size) {
    CHECK_DRIVER();
    uintptr_t begin = (uintptr_t)ptr;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    pthread_mutex_lock(&lock);
    bool whole = whole_mappings(begin, size);
    for (uintptr_t at = begin; whole && at < begin + size;) {
        struct allocation mapping;
        remove_allocation(at, ALLOCATION_VIRTUAL, &mapping);
        mmap((void *)at, mapping.size, PROT_NONE, flags, -1, 0);
        physical_unmapped(mapping.physical);
        at += mapping.size;
    }
    pthread_mutex_unlock(&lock);
    return whole ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- access ---- */

/* The bit of a place that may use memory: a device, or the host. */
static CUresult bit_of(const CUmemLocation *location, uint32_t *bit) {
    switch (location->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        if (!valid_device(location->id))
            return CUDA_ERROR_INVALID_DEVICE;
        *bit = 1u << location->id;
        return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: *bit = 1u << DEVICES; return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult check_descriptions(const CUmemAccessDesc *desc, size_t count) {
    uint32_t bit;
    for (size_t index = 0; index < count; index++) {
        CUmemAccess_flags flags = desc[index].flags;
        CUresult result = bit_of(&desc[index].location, &bit);
        if (result != CUDA_SUCCESS)
            return result;
        /* The GPUs of today cannot map memory to be read only. */
        if (flags == CU_MEM_ACCESS_FLAGS_PROT_READ)
            return CUDA_ERROR_NOT_SUPPORTED;
        if (flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count) {
    CHECK_DRIVER();
    uintptr_t begin = (uintptr_t)ptr;
    if (!desc || !count)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = check_descriptions(desc, count);
    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    bool whole = whole_mappings(begin, size);
    for (uintptr_t at = begin; whole && at < begin + size;) {
        struct allocation mapping;
        find_allocation(at, &mapping);
        for (size_t index = 0; index < count; index++) {
            uint32_t bit = 0;
            bit_of(&desc[index].location, &bit);
            mapping.access = desc[index].flags ? mapping.access | bit : mapping.access & ~bit;
        }
        set_access(at, mapping.access);
        mprotect((void *)at, mapping.size, mapping.access ? PROT_READ | PROT_WRITE : PROT_NONE);
        at += mapping.size;
    }
    pthread_mutex_unlock(&lock);
    return whole ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr) {
    CHECK_DRIVER();
    struct allocation found;
    uint32_t bit = 0;
    if (!flags || !location)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = bit_of(location, &bit);
    if (result != CUDA_SUCCESS)
        return result;
    if (!find_allocation((uintptr_t)ptr, &found) || found.kind != ALLOCATION_VIRTUAL)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = found.access & bit ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr) {
    CHECK_DRIVER();
    struct allocation found;
    if (!handle || !find_allocation((uintptr_t)addr, &found) || found.kind != ALLOCATION_VIRTUAL)
        return CUDA_ERROR_INVALID_VALUE;
    *handle = physical_retain(found.physical);
    return CUDA_SUCCESS;
}
