/* Memory of graphs. What a graph needs is taken from its device at the first upload or launch, kept for the next one, and
 * given back by cuDeviceGraphMemTrim alone. */
#include "driver/capture/graph_memory.h"
#include "driver/allocation/allocation.h"
#include "driver/base/driver.h"
#include "driver/base/objects.h"
#include "driver/base/sizes.h"
#include "driver/capture/capture.h"
#include "driver/context/context.h"
#include "driver/physical/backing.h"

#include <stdlib.h>
#include <sys/mman.h>

/* Under the lock: of each device what graphs have reserved, what of it belongs to executable graphs, and what is
 * allocated now. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    uint64_t reserved, reserved_high;
    uint64_t backed;
    uint64_t used, used_high;
} devices[DEVICES];
static struct graph_backing *backings;

CUresult graph_memory_make(CUdevice device, size_t size, struct graph_memory **made) {
    if (!size || size > SIZE_MAX / 4)
        return size ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
    struct graph_memory *memory = calloc(1, sizeof *memory);
    uint64_t offset = memory ? backing_take(size) : 0;
    uintptr_t address = offset ? backing_map(-1, offset, round_up(size, PAGE), 0, true) : 0;
    struct allocation allocation = {
        .begin = address,
        .size = size,
        .mapped = round_up(size, PAGE),
        .offset = offset,
        .kind = ALLOCATION_GRAPH,
        .device = device,
        .graph = memory,
    };
    if (!address || !insert_allocation(&allocation)) {
        if (address)
            munmap((void *)address, allocation.mapped);
        free(memory);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *memory =
        (struct graph_memory){.address = address, .size = size, .charged = round_up(size, BLOCK), .device = device, .users = 1};
    *made = memory;
    return CUDA_SUCCESS;
}

struct graph_memory *graph_memory_at(CUdeviceptr address) {
    struct allocation found;
    if (!find_allocation((uintptr_t)address, &found) || found.kind != ALLOCATION_GRAPH || found.begin != address)
        return NULL;
    return found.graph;
}

void graph_memory_use(struct graph_memory *memory) {
    pthread_mutex_lock(&lock);
    memory->users++;
    pthread_mutex_unlock(&lock);
}

void graph_memory_drop(struct graph_memory *memory) {
    pthread_mutex_lock(&lock);
    /* What a run has left allocated outlives its graph. */
    bool over = --memory->users == 0 && !memory->live;
    pthread_mutex_unlock(&lock);
    if (over) {
        release(memory->address, ALLOCATION_GRAPH);
        free(memory);
    }
}

CUresult graph_memory_allocate(struct graph_memory *memory) {
    pthread_mutex_lock(&lock);
    bool free_before = !memory->live;
    if (free_before) {
        memory->live = true;
        devices[memory->device].used += memory->charged;
        if (devices[memory->device].used_high < devices[memory->device].used)
            devices[memory->device].used_high = devices[memory->device].used;
    }
    pthread_mutex_unlock(&lock);
    return free_before ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult graph_memory_free(struct graph_memory *memory) {
    pthread_mutex_lock(&lock);
    bool live = memory->live;
    if (live) {
        memory->live = false;
        devices[memory->device].used -= memory->charged;
    }
    bool over = live && !memory->users;
    pthread_mutex_unlock(&lock);
    if (over) {
        release(memory->address, ALLOCATION_GRAPH);
        free(memory);
    }
    return live ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- what executable graphs need ---- */

void graph_backing_enter(struct graph_backing *backing) {
    pthread_mutex_lock(&lock);
    backing->next = backings;
    backings = backing;
    pthread_mutex_unlock(&lock);
}

/* Reserves more for graphs, where what is reserved and belongs to none is not enough. With the lock. */
static bool reserve(CUdevice device, uint64_t bytes) {
    uint64_t wanted = devices[device].backed + bytes;
    if (wanted <= devices[device].reserved)
        return true;
    if (!machine_take_own_memory(&driver.machine, driver.gpu_of[device], wanted - devices[device].reserved))
        return false;
    devices[device].reserved = wanted;
    if (devices[device].reserved_high < wanted)
        devices[device].reserved_high = wanted;
    return true;
}

CUresult graph_backing_take(struct graph_backing *backing) {
    bool enough = true;
    pthread_mutex_lock(&lock);
    for (CUdevice device = 0; !backing->backed && enough && device < driver.device_count; device++)
        enough = !backing->bytes[device] || reserve(device, backing->bytes[device]);
    for (CUdevice device = 0; !backing->backed && enough && device < driver.device_count; device++)
        devices[device].backed += backing->bytes[device];
    backing->backed |= enough;
    pthread_mutex_unlock(&lock);
    return enough ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Leaves what it has to other graphs. With the lock. */
static void unback(struct graph_backing *backing) {
    for (CUdevice device = 0; backing->backed && device < driver.device_count; device++)
        devices[device].backed -= backing->bytes[device];
    backing->backed = false;
}

void graph_backing_end(struct graph_backing *backing) {
    pthread_mutex_lock(&lock);
    unback(backing);
    for (struct graph_backing **link = &backings; *link; link = &(*link)->next) {
        if (*link == backing) {
            *link = backing->next;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

void graph_backing_ran(struct graph_backing *backing, const struct CUctx_st *context) {
    pthread_mutex_lock(&lock);
    backing->ran_in = context;
    backing->ran_in_id = context->id;
    backing->ran_after = load_u64(&context->shared->tail);
    pthread_mutex_unlock(&lock);
}

static bool runs(const struct graph_backing *backing) {
    const struct CUctx_st *context = backing->ran_in;
    return context && context->mark == MARK_CONTEXT && context->id == backing->ran_in_id &&
           load_u64(&context->shared->completed) < backing->ran_after;
}

EXPORT CUresult cuDeviceGraphMemTrim(CUdevice device) {
    CHECK_DRIVER();
    if (!valid_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&lock);
    for (struct graph_backing *backing = backings; backing; backing = backing->next) {
        if (backing->bytes[device] && !runs(backing))
            unback(backing);
    }
    uint64_t keep = devices[device].backed;
    if (keep < devices[device].used)
        keep = round_up(devices[device].used, GRANULARITY);
    if (keep < devices[device].reserved) {
        machine_give_own_memory(&driver.machine, driver.gpu_of[device], devices[device].reserved - keep);
        devices[device].reserved = keep;
    }
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value) {
    CHECK_DRIVER();
    if (!valid_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    switch (attr) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT: *(cuuint64_t *)value = devices[device].used; break;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH: *(cuuint64_t *)value = devices[device].used_high; break;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT: *(cuuint64_t *)value = devices[device].reserved; break;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH: *(cuuint64_t *)value = devices[device].reserved_high; break;
    default: result = CUDA_ERROR_INVALID_VALUE;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

/* The high marks can only be reset. */
EXPORT CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value) {
    CHECK_DRIVER();
    if (!valid_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value || *(cuuint64_t *)value)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    if (attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
        devices[device].used_high = devices[device].used;
    else if (attr == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
        devices[device].reserved_high = devices[device].reserved;
    else
        result = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_unlock(&lock);
    return result;
}

/* ---- allocations and frees as work ---- */

CUresult graph_free_work(CUdeviceptr address, struct node_work *work) {
    struct graph_memory *memory = graph_memory_at(address);
    if (!memory)
        return CUDA_ERROR_INVALID_VALUE;
    graph_memory_use(memory);
    *work = (struct node_work){.kind = WORK_FREE, .memory = memory};
    return CUDA_SUCCESS;
}

CUresult capture_allocation(struct CUstream_st *stream, CUdevice device, size_t size, CUdeviceptr *made) {
    struct node_work work = {.kind = WORK_ALLOCATE};
    CUresult result = graph_memory_make(device, size, &work.memory);
    if (result != CUDA_SUCCESS)
        return result;
    result = capture_work(stream, &work);
    if (result == CUDA_SUCCESS)
        *made = work.memory->address;
    else
        graph_memory_drop(work.memory);
    return result;
}

CUresult capture_free(struct CUstream_st *stream, CUdeviceptr address) {
    struct node_work work;
    CUresult result = graph_free_work(address, &work);
    /* What no graph allocated cannot be freed by one. */
    if (result != CUDA_SUCCESS)
        return result;
    result = capture_work(stream, &work);
    if (result != CUDA_SUCCESS)
        graph_memory_drop(work.memory);
    return result;
}
