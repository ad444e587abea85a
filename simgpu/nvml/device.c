/* What a device is, once and for all. */
#include <stdio.h>
#include <string.h>

#include "nvml/nvml.h"

EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length) {
    ANSWER();
    DEVICE(gpu, device, name);
    const struct simgpu_mig *mig = mig_of(device);
    char text[sizeof gpu->model.name + sizeof mig->profile + sizeof " MIG "];
    snprintf(text, sizeof text, "%s%s%s", gpu->model.name, mig ? " MIG " : "", mig ? mig->profile : "");
    return copy_text(name, length, text);
}

EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length) {
    ANSWER();
    DEVICE(gpu, device, uuid);
    const struct simgpu_mig *mig = mig_of(device);
    return copy_text(uuid, length, mig ? mig->uuid : gpu->uuid);
}

EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index) {
    ANSWER();
    DEVICE(gpu, device, index);
    (void)gpu;
    *index = device->index;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minorNumber) {
    ANSWER();
    DEVICE(gpu, device, minorNumber);
    (void)gpu;
    *minorNumber = device->gpu;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned int length) {
    ANSWER();
    DEVICE(gpu, device, serial);
    (void)gpu;
    (void)length;
    return NVML_ERROR_NOT_SUPPORTED;
}

EXPORT nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, nvmlBrandType_t *type) {
    ANSWER();
    DEVICE(gpu, device, type);
    *type = strstr(gpu->model.name, "GeForce") ? NVML_BRAND_GEFORCE
            : strstr(gpu->model.name, "Tesla") ? NVML_BRAND_TESLA
                                               : NVML_BRAND_NVIDIA;
    return NVML_SUCCESS;
}

static nvmlReturn_t pci_info(nvmlDevice_t device, nvmlPciInfo_t *pci) {
    DEVICE(gpu, device, pci);
    memset(pci, 0, sizeof *pci);
    pci->domain = gpu->pci_domain;
    pci->bus = gpu->pci_bus;
    pci->device = gpu->pci_device;
    pci->pciDeviceId = gpu->model.pci_device_id;
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0", gpu->pci_domain & 0xffff, gpu->pci_bus & 0xff,
             gpu->pci_device & 0xff);
    snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.0", gpu->pci_domain, gpu->pci_bus & 0xff, gpu->pci_device & 0xff);
    return NVML_SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *pci) {
    ANSWER();
    return pci_info(device, pci);
}
EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *pci) {
    ANSWER();
    return pci_info(device, pci);
}
EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) {
    ANSWER();
    return pci_info(device, pci);
}

EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
    ANSWER();
    DEVICE(gpu, device, major);
    if (!minor)
        return NVML_ERROR_INVALID_ARGUMENT;
    *major = (int)gpu->model.compute_major;
    *minor = (int)gpu->model.compute_minor;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, nvmlDeviceArchitecture_t *arch) {
    ANSWER();
    static const struct {
        const char *name;
        nvmlDeviceArchitecture_t number;
    } ARCHITECTURES[] = {
        {"volta", NVML_DEVICE_ARCH_VOLTA}, {"turing", NVML_DEVICE_ARCH_TURING}, {"ampere", NVML_DEVICE_ARCH_AMPERE},
        {"ada", NVML_DEVICE_ARCH_ADA},     {"hopper", NVML_DEVICE_ARCH_HOPPER}, {"blackwell", NVML_DEVICE_ARCH_BLACKWELL},
    };
    DEVICE(gpu, device, arch);
    *arch = NVML_DEVICE_ARCH_UNKNOWN;
    for (size_t index = 0; index < sizeof ARCHITECTURES / sizeof *ARCHITECTURES; index++) {
        if (strcmp(gpu->model.architecture, ARCHITECTURES[index].name) == 0)
            *arch = ARCHITECTURES[index].number;
    }
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_t device, nvmlGpuVirtualizationMode_t *pVirtualMode) {
    ANSWER();
    DEVICE(gpu, device, pVirtualMode);
    *pVirtualMode = gpu->model.virtual_gpu ? NVML_GPU_VIRTUALIZATION_MODE_VGPU : NVML_GPU_VIRTUALIZATION_MODE_NONE;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryBusWidth(nvmlDevice_t device, unsigned int *busWidth) {
    ANSWER();
    DEVICE(gpu, device, busWidth);
    *busWidth = gpu->model.memory_bus_bits;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t *mode) {
    ANSWER();
    DEVICE(gpu, device, mode);
    (void)gpu;
    *mode = NVML_COMPUTEMODE_DEFAULT;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t *mode) {
    ANSWER();
    DEVICE(gpu, device, mode);
    (void)gpu;
    *mode = NVML_FEATURE_ENABLED;
    return NVML_SUCCESS;
}

/* All GPUs hang on one processor, each on a root port of its own. */
EXPORT nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device1, nvmlDevice_t device2,
                                                        nvmlGpuTopologyLevel_t *pathInfo) {
    ANSWER();
    DEVICE(first, device1, pathInfo);
    DEVICE(second, device2, pathInfo);
    *pathInfo = first == second ? NVML_TOPOLOGY_INTERNAL : NVML_TOPOLOGY_NODE;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device1, nvmlDevice_t device2, nvmlGpuP2PCapsIndex_t p2pIndex,
                                           nvmlGpuP2PStatus_t *p2pStatus) {
    ANSWER();
    DEVICE(first, device1, p2pStatus);
    DEVICE(second, device2, p2pStatus);
    (void)p2pIndex;
    *p2pStatus = first == second ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED;
    return NVML_SUCCESS;
}
