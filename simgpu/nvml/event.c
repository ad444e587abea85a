/* Faults as events: a set remembers how far it has read each of its devices' faults. */
#include <stdlib.h>

#include "nvml/nvml.h"

#define SUPPORTED (nvmlEventTypeXidCriticalError | nvmlEventTypeSingleBitEccError | nvmlEventTypeDoubleBitEccError)

struct nvmlEventSet_st {
    pthread_mutex_t lock;
    struct {
        unsigned long long types;
        uint64_t read; /* faults of the GPU that were reported, or had been before */
    } devices[SIMGPU_GPUS];
};

EXPORT nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
    ANSWER();
    CHECK_LIBRARY();
    if (!set)
        return NVML_ERROR_INVALID_ARGUMENT;
    *set = calloc(1, sizeof **set);
    if (!*set)
        return NVML_ERROR_MEMORY;
    pthread_mutex_init(&(*set)->lock, NULL);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
    ANSWER();
    CHECK_LIBRARY();
    if (!set)
        return NVML_ERROR_INVALID_ARGUMENT;
    pthread_mutex_destroy(&set->lock);
    free(set);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *eventTypes) {
    ANSWER();
    DEVICE(gpu, device, eventTypes);
    *eventTypes = gpu->model.ecc ? SUPPORTED : nvmlEventTypeXidCriticalError;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long eventTypes, nvmlEventSet_t set) {
    ANSWER();
    DEVICE(gpu, device, set);
    if (eventTypes & ~(unsigned long long)(gpu->model.ecc ? SUPPORTED : nvmlEventTypeXidCriticalError))
        return NVML_ERROR_NOT_SUPPORTED;
    pthread_mutex_lock(&set->lock);
    if (!set->devices[device->index].types)
        set->devices[device->index].read = load_u64(&gpu->fault_count);
    set->devices[device->index].types |= eventTypes;
    pthread_mutex_unlock(&set->lock);
    return NVML_SUCCESS;
}

static unsigned long long type_of(const struct simgpu_fault *fault) {
    switch (fault->kind) {
    case SIMGPU_FAULT_ECC_SINGLE: return nvmlEventTypeSingleBitEccError;
    case SIMGPU_FAULT_ECC_DOUBLE: return nvmlEventTypeDoubleBitEccError;
    default: return nvmlEventTypeXidCriticalError;
    }
}

/* The next fault that the set asked for. `lost`: a device of the set is gone. */
static bool next_event(nvmlEventSet_t set, nvmlEventData_t *data, bool *lost) {
    *lost = false;
    for (unsigned int index = 0; index < library.count; index++) {
        const struct simgpu_gpu *gpu = &library.machine.shared->gpus[library.devices[index].gpu];
        unsigned long long types = set->devices[index].types;
        uint64_t count = load_u64(&gpu->fault_count);
        *lost |= types && load_u32(&gpu->lost);
        /* A storm keeps its last faults. */
        if (count > set->devices[index].read + SIMGPU_FAULTS)
            set->devices[index].read = count - SIMGPU_FAULTS;
        while (types && set->devices[index].read < count) {
            const struct simgpu_fault *fault = &gpu->faults[set->devices[index].read++ % SIMGPU_FAULTS];
            if (!(type_of(fault) & types))
                continue;
            *data = (nvmlEventData_t){
                .device = &library.devices[index],
                .eventType = type_of(fault),
                .eventData = fault->xid,
                .gpuInstanceId = 0xffffffff,
                .computeInstanceId = 0xffffffff,
            };
            return true;
        }
    }
    return false;
}

static nvmlReturn_t wait_for_event(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms) {
    CHECK_LIBRARY();
    if (!set || !data)
        return NVML_ERROR_INVALID_ARGUMENT;
    uint32_t *faults = &library.machine.shared->faults;
    uint64_t deadline_ns = clock_now_ns() + (uint64_t)timeout_ms * 1000000;
    for (;;) {
        bool lost;
        uint32_t seen = load_u32(faults);
        pthread_mutex_lock(&set->lock);
        bool found = next_event(set, data, &lost);
        pthread_mutex_unlock(&set->lock);
        if (found)
            return NVML_SUCCESS;
        if (lost)
            return NVML_ERROR_GPU_IS_LOST;
        uint64_t now_ns = clock_now_ns();
        if (now_ns >= deadline_ns)
            return NVML_ERROR_TIMEOUT;
        futex_wait_for(faults, seen, deadline_ns - now_ns);
    }
}

EXPORT nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeoutms) {
    ANSWER();
    return wait_for_event(set, data, timeoutms);
}
EXPORT nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeoutms) {
    ANSWER();
    return wait_for_event(set, data, timeoutms);
}
