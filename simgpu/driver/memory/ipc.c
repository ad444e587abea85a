/* Memory of another process, by a handle that can be sent in any way: 64 bytes that say where it lies. As with a real
 * driver both processes must be the same user's and see each other's pids. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/allocation/allocation.h"
#include "driver/base/driver.h"
#include "driver/base/objects.h"
#include "driver/base/sizes.h"
#include "driver/context/context.h"
#include "driver/physical/backing.h"

struct place {
    char magic[8];
    uint64_t machine_ns; /* when the machine was made: it is another one's elsewhere */
    uint64_t process;    /* id */
    uint64_t allocation; /* id */
    uint64_t offset;
    uint64_t size;
    int32_t slot;
    int32_t fd;
    uint32_t gpu;
    uint32_t unused;
};
_Static_assert(sizeof(struct place) == sizeof(CUipcMemHandle), "a place is what a handle holds");

static const char MAGIC[8] = {'S', 'I', 'M', 'G', 'P', 'U', 'I', 'M'};

/* What is open here: once, however often it was opened. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct opened {
    struct place place;
    struct CUctx_st *context;
    uint64_t context_id;
    uintptr_t address;
    unsigned int times;
    struct opened *next;
} *opened;

static uint64_t process_id(int32_t slot) { return driver.machine.shared->processes[slot].id; }

EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr) {
    CURRENT(context);
    struct allocation found;
    (void)context;
    if (!pHandle || !find_allocation((uintptr_t)dptr, &found))
        return CUDA_ERROR_INVALID_VALUE;
    /* Only what cuMemAlloc made: pools, managed and virtual memory have ways of their own. */
    if (found.kind != ALLOCATION_DEVICE || found.pool)
        return CUDA_ERROR_INVALID_VALUE;
    struct place place = {
        .machine_ns = driver.machine.shared->created_ns,
        .process = process_id(driver.machine.slot),
        .allocation = found.id,
        .offset = found.offset,
        .size = found.size,
        .slot = driver.machine.slot,
        .fd = backing_file(),
        .gpu = driver.gpu_of[found.device],
    };
    memcpy(place.magic, MAGIC, sizeof MAGIC);
    memcpy(pHandle, &place, sizeof place);
    return CUDA_SUCCESS;
}

/* The other process's file; −1: it cannot be reached. */
static int open_file(const struct place *place) {
    char path[64];
    int32_t pid;
    if (place->slot < 0 || place->slot >= SIMGPU_PROCESSES || process_id(place->slot) != place->process ||
        !machine_alive(&driver.machine, (uint32_t)place->slot, &pid) || pid <= 0)
        return -1;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, place->fd);
    return open(path, O_RDWR | O_CLOEXEC);
}

static CUresult map(struct CUctx_st *context, const struct place *place, uintptr_t *address) {
    int fd = open_file(place);
    if (fd < 0)
        return CUDA_ERROR_MAP_FAILED;
    size_t mapped = round_up(place->size, PAGE);
    *address = backing_map(fd, place->offset, mapped, 0, true);
    close(fd);
    if (!*address)
        return CUDA_ERROR_MAP_FAILED;
    /* It counts for the process that made it. */
    struct allocation allocation = {.begin = *address,
                                    .size = place->size,
                                    .mapped = mapped,
                                    .kind = ALLOCATION_IPC,
                                    .device = context->device,
                                    .context = context};
    return insert_allocation(&allocation) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* With the lock. What belonged to a context that is over is forgotten. */
static struct opened *find(const struct place *place, uintptr_t address) {
    for (struct opened **link = &opened; *link;) {
        struct opened *each = *link;
        if (each->context->mark != MARK_CONTEXT || each->context->id != each->context_id) {
            *link = each->next;
            free(each);
            continue;
        }
        if (place ? memcmp(&each->place, place, sizeof *place) == 0 : each->address == address)
            return each;
        link = &each->next;
    }
    return NULL;
}

static CUresult open_handle(CUdeviceptr *pointer, const CUipcMemHandle *handle, unsigned int flags) {
    CURRENT(context);
    struct place place;
    memcpy(&place, handle, sizeof place);
    if (!pointer || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS || memcmp(place.magic, MAGIC, sizeof MAGIC) != 0 ||
        place.machine_ns != driver.machine.shared->created_ns || !place.size)
        return CUDA_ERROR_INVALID_VALUE;
    /* The process that made it has it. */
    if (place.slot == driver.machine.slot && place.process == process_id(place.slot))
        return CUDA_ERROR_INVALID_CONTEXT;
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    struct opened *found = find(&place, 0);
    if (!found) {
        found = calloc(1, sizeof *found);
        result = found ? map(context, &place, &found->address) : CUDA_ERROR_OUT_OF_MEMORY;
        if (result == CUDA_SUCCESS) {
            found->place = place;
            found->context = context;
            found->context_id = context->id;
            found->next = opened;
            opened = found;
        } else {
            free(found);
        }
    }
    if (result == CUDA_SUCCESS) {
        found->times++;
        *pointer = found->address;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

EXPORT CUresult cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags) {
    return open_handle(pdptr, &handle, Flags);
}
EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags) {
    return open_handle(pdptr, &handle, Flags);
}

EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr dptr) {
    CURRENT(context);
    (void)context;
    pthread_mutex_lock(&lock);
    struct opened *found = find(NULL, (uintptr_t)dptr);
    CUresult result = found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (found && --found->times == 0) {
        struct opened **link = &opened;
        while (*link != found)
            link = &(*link)->next;
        *link = found->next;
        free(found);
        result = release((uintptr_t)dptr, ALLOCATION_IPC);
    }
    pthread_mutex_unlock(&lock);
    return result;
}
