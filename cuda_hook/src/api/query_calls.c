#include "api/wrappers.h"
#include "base/life.h"
#include "driver/symbols.h"
#include "link/joining.h"
#include "link/link.h"
#include "memory/amounts.h"
#include "memory/devices.h"
#include "memory/pools.h"

/* What programs are told of the memory that there is: the cap and what is left of it, where the device has more. The
 * driver is asked first, and what it says to wrong arguments stands. */

/* Brings the driver's figures for a device of this process down to what the allocation may have. */
static void bring_down(CUdevice device, uint64_t *free, uint64_t *total) {
    const uint64_t cap = es_link.config.memory_cap_bytes;
    const int index = es_device_index(device);
    unsigned long long used;

    if (!es_amounts_counts())
        return;
    es_pools_look(device);
    if (cap == 0 || index < 0 || !es_amounts_used((uint32_t)index, &used))
        return;
    if (*total > cap)
        *total = cap;
    if (used > cap)
        used = cap;
    if (*free > cap - used)
        *free = cap - used;
}

/* The older form of each has 32 bits. */
#define MEM_GET_INFO(name, size)                                                                                           \
    CUresult es_##name(size *free, size *total) {                                                                          \
        uint64_t bytes[2];                                                                                                 \
        CUdevice device;                                                                                                   \
        CUresult result;                                                                                                   \
                                                                                                                           \
        ES_REAL_OR_RETURN(name);                                                                                           \
        result = ES_DRIVER(name)(free, total);                                                                             \
        if (result != CUDA_SUCCESS || free == NULL || total == NULL || ES_DRIVER(cuCtxGetDevice)(&device) != CUDA_SUCCESS) \
            return result;                                                                                                 \
        bytes[0] = *free;                                                                                                  \
        bytes[1] = *total;                                                                                                 \
        bring_down(device, &bytes[0], &bytes[1]);                                                                          \
        *free = (size)bytes[0];                                                                                            \
        *total = (size)bytes[1];                                                                                           \
        return result;                                                                                                     \
    }                                                                                                                      \
    ES_EXPORT(name)

MEM_GET_INFO(cuMemGetInfo_v2, size_t);
MEM_GET_INFO(cuMemGetInfo, unsigned int);

/* Programs ask before they have made a context; a forked child, too. */
static bool capped(uint64_t total) {
    es_join_anew();
    return es_mode_now() != ES_OUT && !es_life_apart() && es_link.config.memory_cap_bytes != 0 &&
           total > es_link.config.memory_cap_bytes;
}

#define DEVICE_TOTAL_MEM(name, size)                                   \
    CUresult es_##name(size *bytes, CUdevice dev) {                    \
        CUresult result;                                               \
                                                                       \
        ES_REAL_OR_RETURN(name);                                       \
        result = ES_DRIVER(name)(bytes, dev);                          \
        if (result == CUDA_SUCCESS && bytes != NULL && capped(*bytes)) \
            *bytes = (size)es_link.config.memory_cap_bytes;            \
        return result;                                                 \
    }                                                                  \
    ES_EXPORT(name)

DEVICE_TOTAL_MEM(cuDeviceTotalMem_v2, size_t);
DEVICE_TOTAL_MEM(cuDeviceTotalMem, unsigned int);
