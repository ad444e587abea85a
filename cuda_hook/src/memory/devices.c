#include "memory/devices.h"

#include <string.h>

#include "base/log.h"
#include "driver/contexts.h"
#include "driver/symbols.h"
#include "link/link.h"

/* What was found out, one byte a device, 0 while it was not: several threads may find out the same at once. */
static uint8_t places[ES_ORDINALS];     /* index + 1 */
static uint8_t integrated[ES_ORDINALS]; /* no: 1, yes: 2 */
static uint8_t only;                    /* whether there is but one: no: 1, yes: 2 */
static bool told;                       /* atomic: that there is one which nobody can tell */
static bool refused;                    /* atomic: that there is one which is not the allocation's */
static const uint8_t unnamed[ES_UUID_BYTES];

static bool valid(CUdevice device) { return device >= 0 && device < ES_ORDINALS; }

/* The later form alone tells the parts of one GPU (MIG) from each other. */
static bool tells_parts(void) { return ES_DRIVER(cuDeviceGetUuid_v2) != NULL; }

static bool uuid_of(CUdevice device, CUuuid *uuid) {
    if (tells_parts())
        return ES_DRIVER(cuDeviceGetUuid_v2)(uuid, device) == CUDA_SUCCESS;
    return ES_DRIVER(cuDeviceGetUuid) != NULL && ES_DRIVER(cuDeviceGetUuid)(uuid, device) == CUDA_SUCCESS;
}

/* The device in this place of the allocation: as the manager names it, or before the first session the folder. */
static const uint8_t *uuid_at(int place) {
    return es_link.page != NULL ? es_link.page->device_uuids[place] : es_link.config.device_uuids[place];
}

/* Is there a device in this place, and has it a name? */
static bool named(int place) { return memcmp(uuid_at(place), unnamed, ES_UUID_BYTES) != 0; }

bool es_devices_named(void) { return named(0); }

bool es_devices_single(void) {
    if (!es_devices_named())
        return false;
    for (int i = 1; i < ES_DEVICES_MAX; i++) {
        if (named(i))
            return false;
    }
    return true;
}

bool es_device_identified(const uint8_t uuid[ES_UUID_BYTES]) { return memcmp(uuid, unnamed, ES_UUID_BYTES) != 0; }

int es_device_named(const uint8_t uuid[ES_UUID_BYTES]) {
    for (int i = 0; es_devices_named() && es_device_identified(uuid) && i < ES_DEVICES_MAX; i++) {
        if (memcmp(uuid_at(i), uuid, ES_UUID_BYTES) == 0)
            return i;
    }
    return -1;
}

/* The driver does not say which device it is (a virtual GPU's, say): it can be told where there is but one on both sides. */
static int place_without_identity(CUdevice device) {
    int all = 0;

    if (ES_DRIVER(cuDeviceGetCount) == NULL || ES_DRIVER(cuDeviceGetCount)(&all) != CUDA_SUCCESS)
        return -1;
    if (all == 1 && es_devices_single())
        return 0;
    if (!__atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
        es_alarm(
            "the driver gives device %d no identity (UUID) of its own, one of %d that this process sees: it cannot be told which "
            "of the allocation's it is, and its memory is not counted; show the process that one device alone",
            (int)device, all);
    return -1;
}

/* Where the devices are named, whatever the program calls them: each is found by its UUID. */
static int place_of(CUdevice device) {
    CUuuid uuid;
    int place;

    if (!uuid_of(device, &uuid) || !es_device_identified((const uint8_t *)uuid.bytes))
        return place_without_identity(device);
    place = es_device_named((const uint8_t *)uuid.bytes);
    return place < 0 && !tells_parts() ? place_without_identity(device) : place;
}

int es_device_index(CUdevice device) {
    uint8_t place;

    if (!valid(device))
        return -1;
    /* Nobody has said yet what the allocation has. */
    if (es_link.page == NULL && !es_devices_named())
        return device;
    place = __atomic_load_n(&places[device], __ATOMIC_RELAXED);
    if (place == 0) {
        /* Where no devices are named, their order is the driver's. */
        const int index = es_devices_named() ? place_of(device) : device;

        /* What is not found is looked for again: the driver may not have begun yet. */
        if (index < 0)
            return -1;
        place = (uint8_t)(index + 1);
        __atomic_store_n(&places[device], place, __ATOMIC_RELAXED);
    }
    return place - 1;
}

bool es_device_foreign(CUdevice device) {
    CUuuid uuid;

    if (!valid(device) || !es_devices_named() || es_device_index(device) >= 0)
        return false;
    if (!tells_parts() || !uuid_of(device, &uuid) || !es_device_identified((const uint8_t *)uuid.bytes))
        return false;
    if (!__atomic_exchange_n(&refused, true, __ATOMIC_RELAXED))
        es_alarm("device %d, as this process counts them, is none of its allocation's and is refused: it was shown more "
                 "devices than it was given (NVIDIA_VISIBLE_DEVICES of its container, CUDA_VISIBLE_DEVICES)",
                 (int)device);
    return true;
}

bool es_device_integrated(CUdevice device) {
    int is = 0;

    if (!valid(device))
        return false;
    if (__atomic_load_n(&integrated[device], __ATOMIC_RELAXED) == 0) {
        if (ES_DRIVER(cuDeviceGetAttribute) == NULL ||
            ES_DRIVER(cuDeviceGetAttribute)(&is, CU_DEVICE_ATTRIBUTE_INTEGRATED, device) != CUDA_SUCCESS)
            return false;
        __atomic_store_n(&integrated[device], is != 0 ? 2 : 1, __ATOMIC_RELAXED);
    }
    return __atomic_load_n(&integrated[device], __ATOMIC_RELAXED) == 2;
}

bool es_device_current(CUdevice *device) {
    return es_context_current() != NULL && ES_DRIVER(cuCtxGetDevice)(device) == CUDA_SUCCESS;
}

bool es_device_only(CUdevice *device) {
    int all = 0;

    if (__atomic_load_n(&only, __ATOMIC_RELAXED) == 0) {
        if (ES_DRIVER(cuDeviceGetCount) == NULL || ES_DRIVER(cuDeviceGetCount)(&all) != CUDA_SUCCESS)
            return false;
        __atomic_store_n(&only, all == 1 ? 2 : 1, __ATOMIC_RELAXED);
    }
    *device = 0;
    return __atomic_load_n(&only, __ATOMIC_RELAXED) == 2;
}

void es_devices_forget(void) {
    only = 0;
    for (int i = 0; i < ES_ORDINALS; i++)
        __atomic_store_n(&places[i], 0, __ATOMIC_RELAXED);
}
