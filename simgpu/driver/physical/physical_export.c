/* Physical memory for other processes, and from them. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/base/driver.h"
#include "driver/base/sizes.h"
#include "driver/physical/backing.h"
#include "driver/physical/physical.h"
#include "machine/export.h"

/* The page before exported memory says what it is. */
struct description {
    char magic[8];
    uint64_t machine_ns; /* when the machine was made: it is another one's elsewhere */
    uint64_t size;
    uint64_t export_id;
    int32_t export_index;
    uint32_t gpu;
    CUmemAllocationProp prop;
};

static const char MAGIC[8] = {'S', 'I', 'M', 'G', 'P', 'U', 'V', 'M'};

/* Each is published once. */
static pthread_mutex_t publishing = PTHREAD_MUTEX_INITIALIZER;

/* Enters it among the machine's exports; from then on its bytes count there. */
static CUresult publish(struct physical *physical) {
    uint32_t gpu = physical->device < 0 ? 0 : driver.gpu_of[physical->device];
    int32_t index = export_make(&driver.machine, SIMGPU_EXPORT_MEMORY, gpu, physical->device < 0 ? 0 : physical->size);
    if (index < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    uint64_t id = driver.machine.shared->exports[index].id;
    physical_exported(physical, index, id);
    struct description description = {
        .machine_ns = driver.machine.shared->created_ns,
        .size = physical->size,
        .export_id = id,
        .export_index = index,
        .gpu = gpu,
        .prop = physical->prop,
    };
    memcpy(description.magic, MAGIC, sizeof MAGIC);
    return backing_write(physical->offset - PAGE, &description, sizeof description) ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

EXPORT CUresult cuMemExportToShareableHandle(void *shareableHandle, CUmemGenericAllocationHandle handle,
                                             CUmemAllocationHandleType handleType, unsigned long long flags) {
    CHECK_DRIVER();
    if (!shareableHandle || flags || handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    struct physical *physical = physical_use(handle, __func__);
    if (!physical)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    if (physical->prop.requestedHandleTypes & (unsigned int)handleType) {
        pthread_mutex_lock(&publishing);
        result = physical->export_index < 0 ? publish(physical) : CUDA_SUCCESS;
        pthread_mutex_unlock(&publishing);
    }
    int fd = result == CUDA_SUCCESS ? backing_export(physical->fd, physical->offset - PAGE) : -1;
    physical_unmapped(physical);
    if (result == CUDA_SUCCESS && fd < 0)
        result = CUDA_ERROR_OPERATING_SYSTEM;
    if (result == CUDA_SUCCESS)
        *(int *)shareableHandle = fd;
    return result;
}

CUresult physical_import(int fd, CUmemGenericAllocationHandle *handle) {
    struct description description;
    uint64_t place = backing_place(fd);
    if (!place || !backing_read(fd, place, &description, sizeof description) ||
        memcmp(description.magic, MAGIC, sizeof MAGIC) != 0 || description.machine_ns != driver.machine.shared->created_ns ||
        !description.size || description.size % GRANULARITY)
        return CUDA_ERROR_INVALID_VALUE;
    if (physical_find_export(description.export_index, description.export_id, handle))
        return CUDA_SUCCESS;
    CUdevice device = -1;
    if (description.prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
        device = device_of_gpu(description.gpu);
        if (device < 0)
            return CUDA_ERROR_INVALID_DEVICE;
        description.prop.location.id = device;
    }
    struct physical *physical = calloc(1, sizeof *physical);
    int own = physical ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (own < 0) {
        free(physical);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!export_hold(&driver.machine, description.export_index, description.export_id)) {
        close(own);
        free(physical);
        return CUDA_ERROR_INVALID_VALUE;
    }
    *physical = (struct physical){
        .size = description.size,
        .prop = description.prop,
        .device = device,
        .fd = own,
        .offset = place + PAGE,
        .export_index = description.export_index,
        .export_id = description.export_id,
    };
    return physical_enter(physical, handle);
}

EXPORT CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle,
                                               CUmemAllocationHandleType shHandleType) {
    CHECK_DRIVER();
    if (!handle || shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    return physical_import((int)(intptr_t)osHandle, handle);
}
