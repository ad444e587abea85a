/* Devices: what the machine says about its GPUs, in the driver's terms. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/base/driver.h"
#include "driver/context/device.h"

EXPORT CUresult cuDeviceGetCount(int *count) {
    CHECK_DRIVER();
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = driver.device_count;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    CHECK_DRIVER();
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    if (!valid_device(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

/* The rest asks about one device and writes to one place. */
#define DEVICE(result, device)                \
    do {                                      \
        CHECK_DRIVER();                       \
        if (!(result))                        \
            return CUDA_ERROR_INVALID_VALUE;  \
        if (!valid_device(device))            \
            return CUDA_ERROR_INVALID_DEVICE; \
    } while (0)

EXPORT CUresult cuDeviceGetName(char *name, int len, CUdevice dev) {
    DEVICE(name, dev);
    if (len <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(name, (size_t)len, "%s", gpu_of_device(dev)->model.name);
    return CUDA_SUCCESS;
}

/* "GPU-" and hexadecimal digits with dashes → 16 bytes. */
static void uuid_bytes(const char *text, char *bytes) {
    int digits = 0;
    memset(bytes, 0, 16);
    for (const char *at = text + strlen("GPU-"); *at && digits < 32; at++) {
        if (*at == '-')
            continue;
        int value = *at >= 'a' ? *at - 'a' + 10 : *at - '0';
        bytes[digits / 2] = (char)((unsigned char)bytes[digits / 2] << 4 | (value & 15));
        digits++;
    }
}

EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev) {
    DEVICE(uuid, dev);
    uuid_bytes(gpu_of_device(dev)->uuid, uuid->bytes);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev) {
    DEVICE(uuid, dev);
    uuid_bytes(gpu_of_device(dev)->uuid, uuid->bytes);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetLuid(char *luid, unsigned int *deviceNodeMask, CUdevice dev) {
    (void)deviceNodeMask;
    DEVICE(luid, dev);
    /* A Windows name. */
    return CUDA_ERROR_NOT_SUPPORTED;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev) {
    DEVICE(bytes, dev);
    *bytes = gpu_total_bytes(gpu_of_device(dev));
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev) {
    DEVICE(major, dev);
    if (!minor)
        return CUDA_ERROR_INVALID_VALUE;
    *major = (int)gpu_of_device(dev)->model.compute_major;
    *minor = (int)gpu_of_device(dev)->model.compute_minor;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev) {
    DEVICE(pciBusId, dev);
    const struct simgpu_gpu *gpu = gpu_of_device(dev);
    if (len < 13)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(pciBusId, (size_t)len, "%04x:%02x:%02x.0", gpu->pci_domain, gpu->pci_bus, gpu->pci_device);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId) {
    CHECK_DRIVER();
    if (!dev || !pciBusId)
        return CUDA_ERROR_INVALID_VALUE;
    unsigned int domain = 0, bus, device;
    if (sscanf(pciBusId, "%x:%x:%x", &domain, &bus, &device) != 3) {
        domain = 0;
        if (sscanf(pciBusId, "%x:%x", &bus, &device) != 2)
            return CUDA_ERROR_INVALID_VALUE;
    }
    for (CUdevice candidate = 0; candidate < driver.device_count; candidate++) {
        const struct simgpu_gpu *gpu = gpu_of_device(candidate);
        if (gpu->pci_domain == domain && gpu->pci_bus == bus && gpu->pci_device == device) {
            *dev = candidate;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

/* What differs from one compute capability to another: "CUDA C++ Programming Guide", technical specifications per compute
 * capability, and NVIDIA's cuda_occupancy.h. */
enum { KIB = 1024 };

/* From 8.0 on the driver keeps one KiB of each block's shared memory. */
static int reserved_shared_bytes(const struct simgpu_model *model) { return model->compute_major >= 8 ? KIB : 0; }

static int shared_bytes(const struct simgpu_model *model) {
    switch (model->compute_major * 10 + model->compute_minor) {
    case 75: return 64 * KIB;
    case 70:
    case 72: return 96 * KIB;
    case 80:
    case 87: return 164 * KIB;
    case 90:
    case 100:
    case 103:
    case 110: return 228 * KIB;
    default: return model->compute_major >= 8 ? 100 * KIB : 64 * KIB;
    }
}

int most_shared_bytes(const struct simgpu_model *model) {
    return model->compute_major >= 7 ? shared_bytes(model) - reserved_shared_bytes(model) : 48 * KIB;
}

static int blocks_per_multiprocessor(const struct simgpu_model *model) {
    switch (model->compute_major * 10 + model->compute_minor) {
    case 75:
    case 86:
    case 87: return 16;
    case 89:
    case 110:
    case 120:
    case 121: return 24;
    default: return 32;
    }
}

/* From 8.0 on three quarters of it can be set aside for what is used again and again, within windows of so much; both as an
 * A100 says. */
enum { MAX_PERSISTING_L2_CACHE_SIZE = 108, MAX_ACCESS_POLICY_WINDOW_SIZE = 109, POLICY_WINDOW_BYTES = 134213632 };

static int persisting_l2_bytes(const struct simgpu_model *model) {
    return model->compute_major >= 8 ? (int)(model->l2_bytes / 4 * 3) : 0;
}

/* Those for high performance computing have half as many units for double precision. */
static int single_to_double_ratio(const struct simgpu_model *model) {
    return model->compute_major >= 6 && model->compute_major <= 10 && model->compute_minor == 0 ? 2 : 32;
}

/* What differs from one GPU to another; false for anything else. */
static bool attribute_of(const struct simgpu_gpu *gpu, CUdevice device, CUdevice_attribute attribute, int *value) {
    const struct simgpu_model *model = &gpu->model;

    switch ((int)attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = (int)model->compute_major; return true;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = (int)model->compute_minor; return true;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = (int)model->multiprocessors; return true;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: *value = (int)model->threads_per_multiprocessor; return true;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *value = (int)model->clock_khz; return true;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: *value = (int)model->memory_clock_khz; return true;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: *value = (int)model->memory_bus_bits; return true;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = (int)model->l2_bytes; return true;
    case CU_DEVICE_ATTRIBUTE_INTEGRATED: *value = (int)model->integrated; return true;
    case CU_DEVICE_ATTRIBUTE_ECC_ENABLED: *value = (int)model->ecc; return true;
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID: *value = (int)gpu->pci_domain; return true;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: *value = (int)gpu->pci_bus; return true;
    case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID: *value = (int)gpu->pci_device; return true;
    case CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID: *value = (int)driver.gpu_of[device]; return true;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = most_shared_bytes(model); return true;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: *value = shared_bytes(model); return true;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK: *value = reserved_shared_bytes(model); return true;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR: *value = blocks_per_multiprocessor(model); return true;
    case MAX_PERSISTING_L2_CACHE_SIZE: *value = persisting_l2_bytes(model); return true;
    case MAX_ACCESS_POLICY_WINDOW_SIZE: *value = persisting_l2_bytes(model) ? POLICY_WINDOW_BYTES : 0; return true;
    case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO: *value = single_to_double_ratio(model); return true;
    default: return false;
    }
}

/* What is the same on every GPU since Volta ("CUDA C++ Programming Guide", technical specifications). */
static int attribute_of_all(CUdevice_attribute attribute) {
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: return 2147483647;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: return 65535;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: return 49152;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR: return 65536;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
    case CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT: return 32;
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH: return 2147483647;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
    case CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT: return 512;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: return 2;
    case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR:
    case CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES:
    case CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS: return 1;
    case CU_DEVICE_ATTRIBUTE_NUMA_ID:
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID: return -1;
    /* What is not simulated is not there: clusters, memory that other devices of the bus reach. */
    default: return extent_of_all(attribute);
    }
}

EXPORT CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev) {
    DEVICE(pi, dev);
    if ((int)attrib < 1)
        return CUDA_ERROR_INVALID_VALUE;
    if (!attribute_of(gpu_of_device(dev), dev, attrib, pi))
        *pi = attribute_of_all(attrib);
    return CUDA_SUCCESS;
}
