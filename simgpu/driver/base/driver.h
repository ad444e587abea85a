/* The driver of one process: which GPUs it has, and what each of its entry points begins with. */
#ifndef SIMGPU_DRIVER_H
#define SIMGPU_DRIVER_H

#include <pthread.h>
#include <stdbool.h>

#include "driver_api.h"
#include "machine/machine.h"

#define EXPORT __attribute__((visibility("default")))

/* An entry point that works on a stream, in its legacy and its per-thread form: `do_NAME` does the work. The stream is
 * the parameter hStream, or the first argument of `do_NAME` where the call has none. */
#define EXPORT_PTSZ(name, params, ...)                             \
    EXPORT CUresult name params { return do_##name(__VA_ARGS__); } \
    EXPORT CUresult name##_ptsz params {                           \
        if (!hStream)                                              \
            hStream = CU_STREAM_PER_THREAD;                        \
        return do_##name(__VA_ARGS__);                             \
    }
#define EXPORT_PTDS(name, params, ...)                                               \
    EXPORT CUresult name params { return do_##name(CU_STREAM_LEGACY, __VA_ARGS__); } \
    EXPORT CUresult name##_ptds params { return do_##name(CU_STREAM_PER_THREAD, __VA_ARGS__); }

enum { DEVICES = SIMGPU_GPUS };

struct driver {
    struct machine machine;
    int device_count;
    uint32_t gpu_of[DEVICES]; /* device ordinal → GPU of the machine */
    struct CUctx_st *primary[DEVICES];
    unsigned int primary_flags[DEVICES];
    unsigned int primary_count[DEVICES];
    struct CUmemPoolHandle_st *pools[DEVICES]; /* the current one of each device, NULL: the default */
    pthread_mutex_t lock;                      /* for what is above, allocations and modules; never held in a wait */
};

/* The driver once cuInit has succeeded. */
extern struct driver driver;

/* CUDA_SUCCESS, or why no call may pass: not initialised, forked, shut down. `call`: who asks. */
CUresult driver_check(const char *call);

/* The CUDA version of the driver, also before cuInit and without a device. */
int driver_cuda_version(void);

#define CHECK_DRIVER()                                  \
    do {                                                \
        CUresult driver_state = driver_check(__func__); \
        if (driver_state != CUDA_SUCCESS)               \
            return driver_state;                        \
    } while (0)

static inline bool valid_device(CUdevice device) { return device >= 0 && device < driver.device_count; }
/* The device that a GPU of the machine is here; −1: it cannot be seen. */
static inline CUdevice device_of_gpu(uint32_t gpu) {
    for (CUdevice device = 0; device < driver.device_count; device++) {
        if (driver.gpu_of[device] == gpu)
            return device;
    }
    return -1;
}
static inline struct simgpu_gpu *gpu_of_device(CUdevice device) { return &driver.machine.shared->gpus[driver.gpu_of[device]]; }

#endif
