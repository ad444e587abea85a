#include <stdint.h>
#include <string.h>

#include "api/wrappers.h"
#include "driver/symbols.h"
#include "link/joining.h"
#include "link/link.h"
#include "memory/amounts.h"
#include "memory/devices.h"

/* NVML shows a container the memory that it may have. Which of NVML's devices are the allocation's: those that the
 * manager names; where it names none, or names one and NVML none, the only one that there is. */

enum {
    FUNCTION_NOT_FOUND = 13, /* NVML_ERROR_FUNCTION_NOT_FOUND */
    UUID_TEXT = 96,          /* NVML_DEVICE_UUID_V2_BUFFER_SIZE */
};

/* The UUID behind "GPU-" or "MIG-"; false when the text has none. */
static bool read_uuid(const char *text, uint8_t uuid[ES_UUID_BYTES]) {
    size_t digits = 0;

    for (text += strcspn(text, "-"); *text != '\0'; text++) {
        const char *digit = strchr("0123456789abcdef", *text);

        if (*text == '-')
            continue;
        if (digit == NULL || digits >= 2 * ES_UUID_BYTES)
            return false;
        uuid[digits / 2] = (uint8_t)(uuid[digits / 2] << 4 | (digit - "0123456789abcdef"));
        digits++;
    }
    return digits == 2 * ES_UUID_BYTES;
}

/* The index of NVML's device within the allocation; -1 when it is not known to be in it. */
static int index_of(nvmlDevice_t device) {
    char text[UUID_TEXT];
    uint8_t uuid[ES_UUID_BYTES] = {0};
    unsigned int all = 0;
    bool identified;

    identified = ES_NVML_LIBRARY(nvmlDeviceGetUUID) != NULL &&
                 ES_NVML_LIBRARY(nvmlDeviceGetUUID)(device, text, sizeof(text)) == 0 && read_uuid(text, uuid) &&
                 es_device_identified(uuid);
    if (identified && es_device_named(uuid) >= 0)
        return es_device_named(uuid);
    return (!es_devices_named() || (!identified && es_devices_single())) && ES_NVML_LIBRARY(nvmlDeviceGetCount_v2) != NULL &&
                   ES_NVML_LIBRARY(nvmlDeviceGetCount_v2)(&all) == 0 && all == 1
               ? 0
               : -1;
}

/* What the allocation may have and has of a device; false when it has no cap there. */
static bool capped(nvmlDevice_t device, unsigned long long *total, unsigned long long *used) {
    uint64_t cap;
    int index;

    es_join_anew();
    index = index_of(device);
    cap = es_link.config.memory_cap_bytes;
    if (index < 0 || cap == 0 || cap >= *total || !es_amounts_used((uint32_t)index, used))
        return false;
    *total = cap;
    *used = *used < cap ? *used : cap;
    return true;
}

nvmlReturn_t es_nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    nvmlReturn_t result;

    if (!es_nvml_find() || ES_NVML_LIBRARY(nvmlDeviceGetMemoryInfo) == NULL)
        return FUNCTION_NOT_FOUND;
    result = ES_NVML_LIBRARY(nvmlDeviceGetMemoryInfo)(device, memory);
    if (result == 0 && capped(device, &memory->total, &memory->used))
        memory->free = memory->total - memory->used;
    return result;
}
ES_EXPORT(nvmlDeviceGetMemoryInfo);

nvmlReturn_t es_nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
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
