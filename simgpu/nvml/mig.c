/* GPUs in MIG mode, and the MIG devices that they are divided into. Nothing runs on these: the driver here does not know
 * them. */
#include <string.h>

#include "nvml/nvml.h"

const struct simgpu_mig *mig_of(nvmlDevice_t device) {
    return device->part < 0 ? NULL : &library.machine.shared->gpus[device->gpu].model.migs[device->part];
}

EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *currentMode, unsigned int *pendingMode) {
    ANSWER();
    DEVICE(gpu, device, currentMode);
    if (!pendingMode)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (gpu->model.mig == SIMGPU_MIG_NEVER)
        return NVML_ERROR_NOT_SUPPORTED;
    *currentMode = *pendingMode = gpu->model.mig == SIMGPU_MIG_ON;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *isMigDevice) {
    ANSWER();
    DEVICE(gpu, device, isMigDevice);
    (void)gpu;
    *isMigDevice = mig_of(device) != NULL;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count) {
    ANSWER();
    DEVICE(gpu, device, count);
    *count = gpu->model.mig == SIMGPU_MIG_ON ? MOST_PARTS : 0;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *migDevice) {
    ANSWER();
    DEVICE(gpu, device, migDevice);
    if (mig_of(device) || index >= MOST_PARTS)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (gpu->model.mig != SIMGPU_MIG_ON)
        return NVML_ERROR_NOT_SUPPORTED;
    if (library.parts[device->index][index].part < 0)
        return NVML_ERROR_NOT_FOUND;
    *migDevice = &library.parts[device->index][index];
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t migDevice, nvmlDevice_t *device) {
    ANSWER();
    DEVICE(gpu, migDevice, device);
    if (!mig_of(migDevice))
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned int index = 0; index < library.count; index++) {
        if (&library.machine.shared->gpus[library.devices[index].gpu] == gpu)
            *device = &library.devices[index];
    }
    return NVML_SUCCESS;
}

static nvmlReturn_t instance_id(nvmlDevice_t device, unsigned int *id, bool compute) {
    DEVICE(gpu, device, id);
    (void)gpu;
    const struct simgpu_mig *mig = mig_of(device);
    if (!mig)
        return NVML_ERROR_NOT_SUPPORTED;
    *id = compute ? mig->compute_instance : mig->gpu_instance;
    return NVML_SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int *id) {
    ANSWER();
    return instance_id(device, id, false);
}
EXPORT nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned int *id) {
    ANSWER();
    return instance_id(device, id, true);
}

EXPORT nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes) {
    ANSWER();
    DEVICE(gpu, device, attributes);
    (void)gpu;
    const struct simgpu_mig *mig = mig_of(device);
    if (!mig)
        return NVML_ERROR_NOT_SUPPORTED;
    memset(attributes, 0, sizeof *attributes);
    attributes->multiprocessorCount = mig->multiprocessors;
    attributes->gpuInstanceSliceCount = mig->gpu_slices;
    attributes->computeInstanceSliceCount = mig->compute_slices;
    attributes->sharedCopyEngineCount = mig->copy_engines;
    attributes->sharedDecoderCount = mig->decoders;
    attributes->sharedJpegCount = mig->jpeg_engines;
    attributes->sharedOfaCount = mig->ofa_engines;
    attributes->memorySizeMB = mig->memory_bytes >> 20;
    return NVML_SUCCESS;
}
