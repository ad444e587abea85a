#ifndef EDGESHARE_DEVICES_H
#define EDGESHARE_DEVICES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/shared/gate_page.h"
#include "driver_api.h"

enum { ES_ORDINALS = 64 };

/* The place within the allocation of the device that the driver calls so: a program may see some of its devices, in an
 * order of its own (CUDA_VISIBLE_DEVICES). -1: it is none of the allocation's. Calls the driver the first time. */
int es_device_index(CUdevice device);

/* Is it known to be none of the allocation's? Nothing may be done with it then: another pod has it, or nobody. */
bool es_device_foreign(CUdevice device);

/* The place of the device with this UUID; -1: it is none of the allocation's. And whether any is named. */
int es_device_named(const uint8_t uuid[ES_UUID_BYTES]);
bool es_devices_named(void);

/* Has the allocation one device alone, which is named? */
bool es_devices_single(void);

/* Is this an identity? Some drivers say zeros. */
bool es_device_identified(const uint8_t uuid[ES_UUID_BYTES]);

/* The device of the calling thread's context; false where it has none. */
bool es_device_current(CUdevice *device);

/* The only one that this process sees; false where it sees several. Calls the driver the first time. */
bool es_device_only(CUdevice *device);

/* Does the device use the host's memory as its own? Calls the driver the first time. */
bool es_device_integrated(CUdevice device);

/* In a forked child. */
void es_devices_forget(void);

#endif
