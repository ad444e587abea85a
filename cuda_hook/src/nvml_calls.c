#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "gate.h"
#include "memory.h"
#include "session.h"
#include "symbols.h"
#include "wrappers.h"

/* NVML shows a container the memory that it may have. Which of NVML's devices are the allocation's: the only one that
 * there is, as in a container with a share of a GPU; of several, the one that CUDA in this process has, too. */

enum {
    FUNCTION_NOT_FOUND = 13, /* NVML_ERROR_FUNCTION_NOT_FOUND */
    UUID_TEXT = 96,          /* NVML_DEVICE_UUID_V2_BUFFER_SIZE */
};

static bool same_uuid(const char *text, const CUuuid *uuid)
{
    char hex[2 * sizeof(uuid->bytes) + 1];
    size_t at = 0;

    for (size_t i = 0; i < sizeof(uuid->bytes); i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", (unsigned char)uuid->bytes[i]);
    if (strncmp(text, "GPU-", 4) != 0)
        return false;
    for (text += 4; *text != '\0'; text++) {
        if (*text == '-')
            continue;
        if (at >= sizeof(hex) - 1 || hex[at++] != *text)
            return false;
    }
    return at == sizeof(hex) - 1;
}

/* The index of NVML's device within the allocation; -1 when it is not known to be in it. */
static int index_of(nvmlDevice_t device)
{
    char text[UUID_TEXT];
    unsigned int all = 0;
    CUuuid uuid;
    int count = 0;

    if (ES_NVML_LIBRARY(nvmlDeviceGetCount_v2) != NULL && ES_NVML_LIBRARY(nvmlDeviceGetCount_v2)(&all) == 0 && all == 1)
        return 0;
    if (ES_NVML_LIBRARY(nvmlDeviceGetUUID) == NULL ||
        ES_NVML_LIBRARY(nvmlDeviceGetUUID)(device, text, sizeof(text)) != 0 || !es_driver_find() ||
        ES_DRIVER(cuDeviceGetCount) == NULL || ES_DRIVER(cuDeviceGetUuid) == NULL ||
        ES_DRIVER(cuDeviceGetCount)(&count) != CUDA_SUCCESS)
        return -1;
    for (int i = 0; i < count; i++) {
        if (ES_DRIVER(cuDeviceGetUuid)(&uuid, i) == CUDA_SUCCESS && same_uuid(text, &uuid))
            return i;
    }
    return -1;
}

/* What the allocation may have and has of a device; false when it has no cap there. */
static bool capped(nvmlDevice_t device, unsigned long long *total, unsigned long long *used)
{
    uint64_t cap;
    int index;

    es_session_join();
    index = index_of(device);
    cap = es_gate.config.memory_cap_bytes;
    if (index < 0 || cap == 0 || cap >= *total || !es_memory_used((uint32_t)index, used))
        return false;
    *total = cap;
    *used = *used < cap ? *used : cap;
    return true;
}

nvmlReturn_t es_nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    nvmlReturn_t result;

    if (!es_nvml_find() || ES_NVML_LIBRARY(nvmlDeviceGetMemoryInfo) == NULL)
        return FUNCTION_NOT_FOUND;
    result = ES_NVML_LIBRARY(nvmlDeviceGetMemoryInfo)(device, memory);
    if (result == 0 && capped(device, &memory->total, &memory->used))
        memory->free = memory->total - memory->used;
    return result;
}
ES_EXPORT(nvmlDeviceGetMemoryInfo);

nvmlReturn_t es_nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    nvmlReturn_t result;

    if (!es_nvml_find() || ES_NVML_LIBRARY(nvmlDeviceGetMemoryInfo_v2) == NULL)
        return FUNCTION_NOT_FOUND;
    result = ES_NVML_LIBRARY(nvmlDeviceGetMemoryInfo_v2)(device, memory);
    if (result == 0 && capped(device, &memory->total, &memory->used)) {
        memory->reserved = 0;
        memory->free = memory->total - memory->used;
    }
    return result;
}
ES_EXPORT(nvmlDeviceGetMemoryInfo_v2);
