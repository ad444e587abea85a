/* The driver's functions that burn uses, found through one of three doors. */
#ifndef SIMGPU_DOORS_H
#define SIMGPU_DOORS_H

#include <stdbool.h>

#include "driver_api.h"

/* DOOR(member, symbol, name for cuGetProcAddress) */
#define DOORS(DOOR)                                                    \
    DOOR(init, cuInit, cuInit)                                         \
    DOOR(device_get, cuDeviceGet, cuDeviceGet)                         \
    DOOR(retain, cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain)   \
    DOOR(set_current, cuCtxSetCurrent, cuCtxSetCurrent)                \
    DOOR(synchronize, cuCtxSynchronize, cuCtxSynchronize)              \
    DOOR(load, cuModuleLoadData, cuModuleLoadData)                     \
    DOOR(get_function, cuModuleGetFunction, cuModuleGetFunction)       \
    DOOR(stream_create, cuStreamCreate, cuStreamCreate)                \
    DOOR(stream_synchronize, cuStreamSynchronize, cuStreamSynchronize) \
    DOOR(launch, cuLaunchKernel, cuLaunchKernel)                       \
    DOOR(alloc, cuMemAlloc_v2, cuMemAlloc)                             \
    DOOR(mem_info, cuMemGetInfo_v2, cuMemGetInfo)                      \
    DOOR(error_name, cuGetErrorName, cuGetErrorName)

/* For graphs alone, and looked for only then: drivers have the newest since CUDA 11.4. */
#define GRAPH_DOORS(DOOR)                                                       \
    DOOR(begin_capture, cuStreamBeginCapture_v2, cuStreamBeginCapture)          \
    DOOR(end_capture, cuStreamEndCapture, cuStreamEndCapture)                   \
    DOOR(instantiate, cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags) \
    DOOR(graph_launch, cuGraphLaunch, cuGraphLaunch)

struct doors {
#define DOOR(member, symbol, name) __typeof__(&symbol) member;
    DOORS(DOOR)
    GRAPH_DOORS(DOOR)
#undef DOOR
};

/* `door`: "linked" (the loader), "dlopen" (dlsym) or "getproc" (cuGetProcAddress). Those for graphs are NULL unless
 * `graphs`. 0, or -1 with one line on stderr. */
int find_doors(struct doors *doors, const char *door, bool graphs);

#endif
