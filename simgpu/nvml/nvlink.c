#include "nvml/nvml.h"

/* A simulated machine has no NVLink and no fabric. That is an answer of a device: whoever asks (NCCL for the topology, monitors
 * for each link) goes on without, where a function that is missing ends some. */

#define NO_LINK(device, result)  \
    ANSWER();                    \
    DEVICE(gpu, device, result); \
    (void)gpu;                   \
    return NVML_ERROR_NOT_SUPPORTED

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, nvmlEnableState_t *isActive) {
    (void)link;
    NO_LINK(device, isActive);
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned int link, nvmlNvLinkCapability_t capability,
                                                  unsigned int *capResult) {
    (void)link, (void)capability;
    NO_LINK(device, capResult);
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci) {
    (void)link;
    NO_LINK(device, pci);
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci) {
    (void)link;
    NO_LINK(device, pci);
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link,
                                                        nvmlIntNvLinkDeviceType_t *pNvLinkDeviceType) {
    (void)link;
    NO_LINK(device, pNvLinkDeviceType);
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfoV_t *gpuFabricInfo) {
    NO_LINK(device, gpuFabricInfo);
}
