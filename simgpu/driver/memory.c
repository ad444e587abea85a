/* Allocations. Device memory is address space of this process, filled when it is first touched: what is copied to it can
 * be copied back, and a GPU's capacity is a number in the machine. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "driver/graph.h"

/* Allocations are aligned and counted in blocks of so much (a real driver: 256 or 512 bytes, from chunks of 2 MiB). */
#define BLOCK 512u
#define PAGE 4096u

/* All allocations of the process, in the order of their addresses. */
static struct {
    pthread_mutex_t lock;
    struct allocation *items;
    size_t count;
    size_t room;
    uint64_t last_id;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The number of allocations that begin at or before the address. Under the table's lock. */
static size_t before(uintptr_t address) {
    size_t low = 0, high = table.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (table.items[middle].begin <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool find_allocation(uintptr_t address, struct allocation *found) {
    pthread_mutex_lock(&table.lock);
    size_t place = before(address);
    bool holds = place && address - table.items[place - 1].begin < table.items[place - 1].size;
    if (holds)
        *found = table.items[place - 1];
    pthread_mutex_unlock(&table.lock);
    return holds;
}

static bool insert(struct allocation *allocation) {
    pthread_mutex_lock(&table.lock);
    bool room = table.count < table.room;
    if (!room) {
        size_t more = table.room ? table.room * 2 : 64;
        struct allocation *items = realloc(table.items, more * sizeof *items);
        if (items) {
            table.items = items;
            table.room = more;
            room = true;
        }
    }
    if (room) {
        size_t place = before(allocation->begin);
        memmove(&table.items[place + 1], &table.items[place], (table.count - place) * sizeof *table.items);
        allocation->id = ++table.last_id;
        table.items[place] = *allocation;
        table.count++;
    }
    pthread_mutex_unlock(&table.lock);
    return room;
}

static bool on_device(enum allocation_kind kind) { return kind == ALLOCATION_DEVICE || kind == ALLOCATION_MANAGED; }

/* Takes the allocation that begins at the address out of the table, if it is of a kind that `kind` frees. */
static bool take_out(uintptr_t begin, enum allocation_kind kind, struct allocation *taken) {
    pthread_mutex_lock(&table.lock);
    size_t place = before(begin);
    bool found = place && table.items[place - 1].begin == begin &&
                 (kind == ALLOCATION_DEVICE ? on_device(table.items[place - 1].kind)
                                            : table.items[place - 1].kind == kind);
    if (found) {
        *taken = table.items[place - 1];
        memmove(&table.items[place - 1], &table.items[place], (table.count - place) * sizeof *table.items);
        table.count--;
    }
    pthread_mutex_unlock(&table.lock);
    return found;
}

static void give_back(const struct allocation *allocation) {
    if (allocation->charged)
        machine_give_memory(&driver.machine, allocation->context->gpu, allocation->context->index, allocation->charged);
    if (allocation->mapped)
        munmap((void *)allocation->begin, allocation->mapped);
}

CUresult allocate(struct CUctx_st *context, size_t size, enum allocation_kind kind, unsigned int flags,
                  struct CUmemPoolHandle_st *pool, uintptr_t *made) {
    if (!size)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult error = queue_error(context);
    /* Allocation in a stream's order is safe during a capture, any other is not. */
    if (error == CUDA_SUCCESS && !pool)
        error = capture_check_unsafe();
    if (error != CUDA_SUCCESS)
        return error;
    const struct simgpu_model *model = &driver.machine.shared->gpus[context->gpu].model;
    if (size > SIZE_MAX / 2)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct allocation allocation = {.size = size, .kind = kind, .flags = flags, .context = context, .pool = pool};
    allocation.mapped = (size + PAGE - 1) / PAGE * PAGE;
    /* On an integrated GPU host allocations come out of the same memory. */
    if (on_device(kind) || model->integrated)
        allocation.charged = (size + BLOCK - 1) / BLOCK * BLOCK;
    if (allocation.charged &&
        !machine_take_memory(&driver.machine, context->gpu, context->index, allocation.charged))
        return CUDA_ERROR_OUT_OF_MEMORY;
    void *memory = mmap(NULL, allocation.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        allocation.mapped = 0;
        give_back(&allocation);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    allocation.begin = (uintptr_t)memory;
    if (!insert(&allocation)) {
        give_back(&allocation);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (pool)
        pool_count(pool, (int64_t)allocation.charged);
    *made = allocation.begin;
    return CUDA_SUCCESS;
}

CUresult release(uintptr_t begin, enum allocation_kind kind) {
    struct allocation allocation;
    if (!take_out(begin, kind, &allocation))
        return CUDA_ERROR_INVALID_VALUE;
    if (allocation.pool)
        pool_count(allocation.pool, -(int64_t)allocation.charged);
    give_back(&allocation);
    return CUDA_SUCCESS;
}

void allocations_end(struct CUctx_st *context) {
    for (;;) {
        struct allocation allocation = {0};
        pthread_mutex_lock(&table.lock);
        for (size_t place = 0; place < table.count && !allocation.size; place++) {
            if (table.items[place].context == context)
                allocation = table.items[place];
        }
        pthread_mutex_unlock(&table.lock);
        if (!allocation.size)
            return;
        release(allocation.begin, allocation.kind);
    }
}

/* ---- device memory ---- */

EXPORT CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
    CURRENT(context);
    if (!free || !total)
        return CUDA_ERROR_INVALID_VALUE;
    const struct simgpu_gpu *gpu = &driver.machine.shared->gpus[context->gpu];
    machine_reap(&driver.machine, clock_now_ns());
    uint64_t used = gpu_used_bytes(gpu);
    *total = gpu_total_bytes(gpu);
    *free = used < *total ? *total - used : 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize) {
    CURRENT(context);
    if (!dptr)
        return CUDA_ERROR_INVALID_VALUE;
    uintptr_t made;
    CUresult result = allocate(context, bytesize, ALLOCATION_DEVICE, 0, NULL, &made);
    if (result == CUDA_SUCCESS)
        *dptr = made;
    return result;
}

EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
                                   unsigned int ElementSizeBytes) {
    CURRENT(context);
    if (!dptr || !pPitch || !WidthInBytes || !Height ||
        (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16))
        return CUDA_ERROR_INVALID_VALUE;
    if (WidthInBytes > SIZE_MAX / 2 / Height)
        return CUDA_ERROR_OUT_OF_MEMORY;
    size_t pitch = (WidthInBytes + BLOCK - 1) / BLOCK * BLOCK;
    uintptr_t made;
    CUresult result = allocate(context, pitch * Height, ALLOCATION_DEVICE, 0, NULL, &made);
    if (result == CUDA_SUCCESS) {
        *dptr = made;
        *pPitch = pitch;
    }
    return result;
}

EXPORT CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags) {
    CURRENT(context);
    if (!dptr || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    uintptr_t made;
    CUresult result = allocate(context, bytesize, ALLOCATION_MANAGED, flags, NULL, &made);
    if (result == CUDA_SUCCESS)
        *dptr = made;
    return result;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr dptr) {
    CURRENT(context);
    (void)context;
    if (!dptr)
        return CUDA_SUCCESS;
    struct allocation allocation;
    if (!find_allocation((uintptr_t)dptr, &allocation))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = capture_check_unsafe();
    /* As a real driver does: what is queued may still use it. */
    if (result == CUDA_SUCCESS)
        result = queue_wait(allocation.context, load_u64(&allocation.context->shared->tail), false);
    return result == CUDA_SUCCESS ? release((uintptr_t)dptr, ALLOCATION_DEVICE) : result;
}

EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr) {
    CURRENT(context);
    (void)context;
    struct allocation allocation;
    if (!find_allocation((uintptr_t)dptr, &allocation))
        return CUDA_ERROR_NOT_FOUND;
    if (pbase)
        *pbase = allocation.begin;
    if (psize)
        *psize = allocation.size;
    return CUDA_SUCCESS;
}

/* ---- host memory ---- */

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
EXPORT CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags) {
    return allocate_host(pp, bytesize, Flags);
}

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
    struct allocation allocation = {
        .begin = (uintptr_t)p, .size = bytesize, .kind = ALLOCATION_REGISTERED, .flags = Flags, .context = context};
    return insert(&allocation) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
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
    return find_allocation((uintptr_t)address, found) && !on_device(found->kind) ? CUDA_SUCCESS
                                                                               : CUDA_ERROR_INVALID_VALUE;
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
