/* The library: its start and end, its errors, its devices. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "machine/visible.h"
#include "nvml/nvml.h"

struct library library = {.lock = PTHREAD_MUTEX_INITIALIZER, .machine = {.lock_fd = -1, .slot = -1}};

nvmlReturn_t check_library(void) {
    return __atomic_load_n(&library.uses, __ATOMIC_ACQUIRE) > 0 ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

static uint32_t answer_of(const char *function) {
    const struct simgpu_machine *shared = library.machine.shared;
    uint32_t count = shared ? load_u32(&shared->nvml.count) : 0;
    for (uint32_t index = 0; index < count && index < SIMGPU_ANSWERS; index++) {
        if (strcmp(shared->nvml.answers[index].function, function) == 0)
            return load_u32(&shared->nvml.answers[index].answer);
    }
    return 0;
}

nvmlReturn_t told_answer(const char *function) {
    uint32_t answer = answer_of(function);
    return answer < SIMGPU_ANSWER_NO_MEMORY ? (nvmlReturn_t)answer : NVML_SUCCESS;
}

bool answers_so(const char *function, enum simgpu_answer_kind kind) { return answer_of(function) == (uint32_t)kind; }

static bool is_device(nvmlDevice_t device) {
    const struct nvmlDevice_st *parts = &library.parts[0][0];
    return (device >= library.devices && device < library.devices + library.count) ||
           (device >= parts && device < parts + library.count * MOST_PARTS && device->part >= 0);
}

nvmlReturn_t check_device(nvmlDevice_t device) {
    CHECK_LIBRARY();
    if (!is_device(device))
        return NVML_ERROR_INVALID_ARGUMENT;
    const struct simgpu_gpu *gpu = &library.machine.shared->gpus[device->gpu];
    while (load_u32(&gpu->silent))
        usleep(1000);
    return load_u32(&gpu->lost) ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

nvmlReturn_t copy_text(char *to, unsigned int length, const char *text) {
    if (!to)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(text) >= length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(to, text);
    return NVML_SUCCESS;
}

static void in_child(void) { machine_forked(&library.machine); }

/* Under the library's lock. */
static nvmlReturn_t start(void) {
    if (library.machine.shared)
        return NVML_SUCCESS;
    switch (machine_open(&library.machine, NULL)) {
    case MACHINE_OK: break;
    case MACHINE_MISSING: return NVML_ERROR_DRIVER_NOT_LOADED;
    case MACHINE_WRONG_VERSION: return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    default: return NVML_ERROR_NO_PERMISSION;
    }
    uint32_t gpus[SIMGPU_GPUS];
    library.count = (unsigned int)visible_to_container(library.machine.shared, gpus);
    for (unsigned int index = 0; index < library.count; index++) {
        const struct simgpu_model *model = &library.machine.shared->gpus[gpus[index]].model;
        library.devices[index] = (struct nvmlDevice_st){.gpu = gpus[index], .index = index, .part = -1};
        for (int part = 0; part < MOST_PARTS; part++) {
            bool made = model->mig == SIMGPU_MIG_ON && part < (int)model->mig_count;
            library.parts[index][part] =
                (struct nvmlDevice_st){.gpu = gpus[index], .index = (unsigned int)part, .part = made ? part : -1};
        }
    }
    pthread_atfork(NULL, NULL, in_child);
    return NVML_SUCCESS;
}

static nvmlReturn_t init(const char *function) {
    pthread_mutex_lock(&library.lock);
    nvmlReturn_t result = start();
    if (result == NVML_SUCCESS)
        result = told_answer(function);
    if (result == NVML_SUCCESS)
        __atomic_add_fetch(&library.uses, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&library.lock);
    return result;
}

EXPORT nvmlReturn_t nvmlInit(void) { return init(__func__); }
EXPORT nvmlReturn_t nvmlInit_v2(void) { return init(__func__); }
EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned int flags) {
    /* NVML_INIT_FLAG_NO_GPUS and _NO_ATTACH are all there are. */
    return flags & ~3u ? NVML_ERROR_INVALID_ARGUMENT : init(__func__);
}

EXPORT nvmlReturn_t nvmlShutdown(void) {
    ANSWER();
    pthread_mutex_lock(&library.lock);
    nvmlReturn_t result = library.uses > 0 ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
    if (result == NVML_SUCCESS)
        __atomic_sub_fetch(&library.uses, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&library.lock);
    return result;
}

EXPORT const char *nvmlErrorString(nvmlReturn_t result) {
    switch (result) {
    case NVML_SUCCESS: return "Success";
    case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
    case NVML_ERROR_NO_PERMISSION: return "Insufficient Permissions";
    case NVML_ERROR_NOT_FOUND: return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE: return "Insufficient Size";
    case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case NVML_ERROR_TIMEOUT: return "Timeout";
    case NVML_ERROR_LIBRARY_NOT_FOUND: return "NVML Shared Library Not Found";
    case NVML_ERROR_FUNCTION_NOT_FOUND: return "Function Not Found";
    case NVML_ERROR_GPU_IS_LOST: return "GPU is lost";
    case NVML_ERROR_RESET_REQUIRED: return "GPU requires reset";
    case NVML_ERROR_OPERATING_SYSTEM: return "The operating system has blocked the request";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH: return "Driver/library version mismatch";
    case NVML_ERROR_IN_USE: return "In use by another client";
    case NVML_ERROR_MEMORY: return "Insufficient Memory";
    case NVML_ERROR_NO_DATA: return "No data";
    case NVML_ERROR_INSUFFICIENT_RESOURCES: return "Insufficient resources";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH: return "Argument version mismatch";
    default: return "Unknown Error";
    }
}

/* ---- the system ---- */

EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length) {
    ANSWER();
    CHECK_LIBRARY();
    return copy_text(version, length, library.machine.shared->driver_version);
}

EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length) {
    ANSWER();
    CHECK_LIBRARY();
    char text[64];
    /* The library's version is the CUDA major's, and the driver's after it. */
    snprintf(text, sizeof text, "%u.%s", library.machine.shared->cuda_version / 1000, library.machine.shared->driver_version);
    return copy_text(version, length, text);
}

static nvmlReturn_t cuda_version(int *version) {
    CHECK_LIBRARY();
    if (!version)
        return NVML_ERROR_INVALID_ARGUMENT;
    *version = (int)library.machine.shared->cuda_version;
    return NVML_SUCCESS;
}
EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *cudaDriverVersion) {
    ANSWER();
    return cuda_version(cudaDriverVersion);
}
EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *cudaDriverVersion) {
    ANSWER();
    return cuda_version(cudaDriverVersion);
}

EXPORT nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length) {
    ANSWER();
    CHECK_LIBRARY();
    char path[64], text[4096];
    if (!name || !length)
        return NVML_ERROR_INVALID_ARGUMENT;
    snprintf(path, sizeof path, "/proc/%u/exe", pid);
    ssize_t size = readlink(path, text, sizeof text - 1);
    if (size < 0)
        return NVML_ERROR_NOT_FOUND;
    text[size] = 0;
    snprintf(name, length, "%s", text);
    return NVML_SUCCESS;
}

/* ---- finding devices ---- */

static nvmlReturn_t count_devices(unsigned int *count) {
    CHECK_LIBRARY();
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = library.count;
    return NVML_SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned int *deviceCount) {
    ANSWER();
    return count_devices(deviceCount);
}
EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *deviceCount) {
    ANSWER();
    return count_devices(deviceCount);
}

static nvmlReturn_t found(unsigned int index, nvmlDevice_t *device) {
    *device = &library.devices[index];
    return check_device(*device);
}

static nvmlReturn_t by_index(unsigned int index, nvmlDevice_t *device) {
    CHECK_LIBRARY();
    if (!device || index >= library.count)
        return NVML_ERROR_INVALID_ARGUMENT;
    return found(index, device);
}
EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device) {
    ANSWER();
    return by_index(index, device);
}
EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
    ANSWER();
    return by_index(index, device);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
    ANSWER();
    CHECK_LIBRARY();
    if (!uuid || !device)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned int index = 0; index < library.count; index++) {
        const struct simgpu_gpu *gpu = &library.machine.shared->gpus[library.devices[index].gpu];
        if (strcmp(gpu->uuid, uuid) == 0)
            return found(index, device);
        for (uint32_t part = 0; part < gpu->model.mig_count; part++) {
            if (strcmp(gpu->model.migs[part].uuid, uuid) == 0) {
                *device = &library.parts[index][part];
                return check_device(*device);
            }
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

static nvmlReturn_t by_pci(const char *text, nvmlDevice_t *device) {
    CHECK_LIBRARY();
    if (!text || !device)
        return NVML_ERROR_INVALID_ARGUMENT;
    unsigned int domain = 0, bus, slot;
    if (sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3) {
        domain = 0;
        if (sscanf(text, "%x:%x", &bus, &slot) != 2)
            return NVML_ERROR_INVALID_ARGUMENT;
    }
    for (unsigned int index = 0; index < library.count; index++) {
        const struct simgpu_gpu *gpu = &library.machine.shared->gpus[library.devices[index].gpu];
        if (gpu->pci_domain == domain && gpu->pci_bus == bus && gpu->pci_device == slot)
            return found(index, device);
    }
    return NVML_ERROR_NOT_FOUND;
}
EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *pciBusId, nvmlDevice_t *device) {
    ANSWER();
    return by_pci(pciBusId, device);
}
EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *pciBusId, nvmlDevice_t *device) {
    ANSWER();
    return by_pci(pciBusId, device);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device) {
    ANSWER();
    CHECK_LIBRARY();
    return serial && device ? NVML_ERROR_NOT_FOUND : NVML_ERROR_INVALID_ARGUMENT;
}
