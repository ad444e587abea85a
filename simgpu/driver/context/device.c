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

/* Those for high performance computing have half as many units for double precision. */
static int single_to_double_ratio(const struct simgpu_model *model) {
    return model->compute_major >= 6 && model->compute_major <= 10 && model->compute_minor == 0 ? 2 : 32;
}

EXPORT CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev) {
    DEVICE(pi, dev);
    const struct simgpu_gpu *gpu = gpu_of_device(dev);
    const struct simgpu_model *model = &gpu->model;
    if ((int)attrib < 1)
        return CUDA_ERROR_INVALID_VALUE;
    switch (attrib) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *pi = (int)model->compute_major; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *pi = (int)model->compute_minor; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *pi = (int)model->multiprocessors; break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: *pi = (int)model->threads_per_multiprocessor; break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *pi = (int)model->clock_khz; break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: *pi = (int)model->memory_clock_khz; break;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: *pi = (int)model->memory_bus_bits; break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *pi = (int)model->l2_bytes; break;
    case CU_DEVICE_ATTRIBUTE_INTEGRATED: *pi = (int)model->integrated; break;
    case CU_DEVICE_ATTRIBUTE_ECC_ENABLED: *pi = (int)model->ecc; break;
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID: *pi = (int)gpu->pci_domain; break;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: *pi = (int)gpu->pci_bus; break;
    case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID: *pi = (int)gpu->pci_device; break;
    case CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID: *pi = (int)driver.gpu_of[dev]; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *pi = most_shared_bytes(model); break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: *pi = shared_bytes(model); break;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK: *pi = reserved_shared_bytes(model); break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR: *pi = blocks_per_multiprocessor(model); break;
    case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO: *pi = single_to_double_ratio(model); break;
    /* The rest is the same on every GPU since Volta ("CUDA C++ Programming Guide", technical specifications). */
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: *pi = 1024; break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: *pi = 64; break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: *pi = 2147483647; break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: *pi = 65535; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *pi = 49152; break;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR: *pi = 65536; break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
    case CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT: *pi = 32; break;
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH: *pi = 2147483647; break;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
    case CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT: *pi = 512; break;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: *pi = 2; break;
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
    case CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS: *pi = 1; break;
    case CU_DEVICE_ATTRIBUTE_NUMA_ID:
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID: *pi = -1; break;
    /* What is not simulated is not there: textures, clusters. */
    default: *pi = 0;
    }
    return CUDA_SUCCESS;
}
