#include "driver/physical/physical.h"
#include "driver/base/driver.h"
#include "driver/base/objects.h"
#include "driver/base/sizes.h"
#include "driver/physical/backing.h"
#include "machine/export.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A handle is a place in the table (from 1) and, above it, how often the place was used: a stale one is told. */
static struct {
    pthread_mutex_t lock;
    struct slot {
        struct physical *physical;
        uint32_t uses;
    } *slots;
    uint32_t count;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Under the table's lock. */
static struct physical *find(CUmemGenericAllocationHandle handle) {
    uint32_t place = (uint32_t)handle - 1;
    if (place >= table.count || table.slots[place].uses != (uint32_t)(handle >> 32))
        return NULL;
    return table.slots[place].physical;
}

/* Gives a new one its handle. Under the table's lock. */
static bool enter(struct physical *physical) {
    uint32_t place = 0;
    while (place < table.count && table.slots[place].physical)
        place++;
    if (place == table.count) {
        uint32_t more = table.count ? table.count * 2 : 64;
        struct slot *slots = realloc(table.slots, more * sizeof *slots);
        if (!slots)
            return false;
        memset(slots + table.count, 0, (more - table.count) * sizeof *slots);
        table.slots = slots;
        table.count = more;
    }
    table.slots[place].physical = physical;
    physical->handle = (uint64_t)++table.slots[place].uses << 32 | (place + 1);
    return true;
}

static void give_back(struct physical *physical) {
    bool last = true;
    if (physical->export_index >= 0)
        last = export_drop(&driver.machine, physical->export_index, physical->export_id);
    else if (physical->device >= 0)
        machine_give_own_memory(&driver.machine, driver.gpu_of[physical->device], physical->size);
    if (last)
        backing_give(physical->fd, physical->offset - PAGE, physical->size + PAGE);
    if (physical->fd >= 0)
        close(physical->fd);
    free(physical);
}

/* Ends it when neither a handle nor a mapping is left. The table's lock is let go. */
static void unlock_and_settle(struct physical *physical) {
    bool over = !physical->handles && !physical->mappings;
    if (over)
        table.slots[(uint32_t)physical->handle - 1].physical = NULL;
    pthread_mutex_unlock(&table.lock);
    if (over)
        give_back(physical);
}

struct physical *physical_use(CUmemGenericAllocationHandle handle, const char *call) {
    pthread_mutex_lock(&table.lock);
    struct physical *found = find(handle);
    if (found && found->handles)
        found->mappings++;
    else
        found = NULL;
    pthread_mutex_unlock(&table.lock);
    if (!found)
        misused(call, "memory handle", MISUSE_UNKNOWN);
    return found;
}

CUmemGenericAllocationHandle physical_retain(struct physical *physical) {
    pthread_mutex_lock(&table.lock);
    physical->handles++;
    CUmemGenericAllocationHandle handle = physical->handle;
    pthread_mutex_unlock(&table.lock);
    return handle;
}

void physical_mapped(struct physical *physical) {
    pthread_mutex_lock(&table.lock);
    physical->mappings++;
    pthread_mutex_unlock(&table.lock);
}

void physical_unmapped(struct physical *physical) {
    pthread_mutex_lock(&table.lock);
    physical->mappings--;
    unlock_and_settle(physical);
}

CUresult physical_release(CUmemGenericAllocationHandle handle) {
    pthread_mutex_lock(&table.lock);
    struct physical *found = find(handle);
    if (!found || !found->handles) {
        pthread_mutex_unlock(&table.lock);
        misused("cuMemRelease", "memory handle", MISUSE_UNKNOWN);
        return CUDA_ERROR_INVALID_VALUE;
    }
    found->handles--;
    unlock_and_settle(found);
    return CUDA_SUCCESS;
}

/* ---- making ---- */

static CUresult check_prop(const CUmemAllocationProp *prop, CUdevice *device) {
    if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (prop->requestedHandleTypes & ~(unsigned int)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    switch (prop->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE: *device = prop->location.id; break;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: *device = -1; return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return valid_device(*device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult physical_enter(struct physical *physical, CUmemGenericAllocationHandle *handle) {
    physical->handles = 1;
    pthread_mutex_lock(&table.lock);
    bool entered = enter(physical);
    pthread_mutex_unlock(&table.lock);
    if (!entered) {
        give_back(physical);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *handle = physical->handle;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
                            unsigned long long flags) {
    CHECK_DRIVER();
    CUdevice device;
    CUresult result = check_prop(prop, &device);
    if (result != CUDA_SUCCESS)
        return result;
    if (!handle || !size || size % GRANULARITY || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (device >= 0 && load_u32(&gpu_of_device(device)->lost))
        return CUDA_ERROR_DEVICE_UNAVAILABLE;
    struct physical *physical = calloc(1, sizeof *physical);
    if (!physical || size > SIZE_MAX / 4 ||
        (device >= 0 && !machine_take_own_memory(&driver.machine, driver.gpu_of[device], size))) {
        free(physical);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *physical = (struct physical){.size = size, .prop = *prop, .device = device, .fd = -1, .export_index = -1};
    uint64_t range = backing_take(size + PAGE);
    if (!range) {
        if (device >= 0)
            machine_give_own_memory(&driver.machine, driver.gpu_of[device], size);
        free(physical);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    physical->offset = range + PAGE;
    return physical_enter(physical, handle);
}

EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    CHECK_DRIVER();
    return physical_release(handle);
}

EXPORT CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle) {
    CHECK_DRIVER();
    struct physical *physical = prop ? physical_use(handle, __func__) : NULL;
    if (!physical)
        return CUDA_ERROR_INVALID_VALUE;
    *prop = physical->prop;
    physical_unmapped(physical);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                              CUmemAllocationGranularity_flags option) {
    CHECK_DRIVER();
    CUdevice device;
    if (!granularity || (unsigned int)option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = check_prop(prop, &device);
    if (result == CUDA_SUCCESS)
        *granularity = GRANULARITY;
    return result;
}

/* ---- exports ---- */

void physical_exported(struct physical *physical, int32_t index, uint64_t id) {
    pthread_mutex_lock(&table.lock);
    physical->export_id = id;
    physical->export_index = index;
    pthread_mutex_unlock(&table.lock);
}

bool physical_find_export(int32_t index, uint64_t id, CUmemGenericAllocationHandle *handle) {
    bool found = false;
    pthread_mutex_lock(&table.lock);
    for (uint32_t place = 0; place < table.count && !found; place++) {
        struct physical *physical = table.slots[place].physical;
        if (physical && physical->export_index == index && physical->export_id == id) {
            physical->handles++;
            *handle = physical->handle;
            found = true;
        }
    }
    pthread_mutex_unlock(&table.lock);
    return found;
}
