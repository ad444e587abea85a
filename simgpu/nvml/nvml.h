/* What the parts of the simulated management library share. */
#ifndef SIMGPU_NVML_H
#define SIMGPU_NVML_H

#include <pthread.h>

#include "machine/machine.h"
#include "nvml/nvml_api.h"

#define EXPORT __attribute__((visibility("default")))

#define MOST_PARTS 7 /* MIG devices of one GPU */

/* A handle stays good for the life of the process, also over a new nvmlInit. */
struct nvmlDevice_st {
    uint32_t gpu;
    unsigned int index;
    int part; /* of the GPU: which MIG device; -1: all of it */
};

struct library {
    pthread_mutex_t lock;
    int uses; /* nvmlInit less nvmlShutdown */
    struct machine machine;
    unsigned int count;
    struct nvmlDevice_st devices[SIMGPU_GPUS];
    struct nvmlDevice_st parts[SIMGPU_GPUS][MOST_PARTS]; /* MIG devices, by the place of their GPU in `devices` */
};

extern struct library library;

/* NVML_SUCCESS, or why a call cannot pass: not initialised, no such device, or lost. */
nvmlReturn_t check_library(void);
nvmlReturn_t check_device(nvmlDevice_t device);

/* What the machine's profile has a function answer in place of what it would; NVML_SUCCESS: it answers as ever. One that a
 * driver does not export answers FUNCTION_NOT_FOUND here, which is what a binding makes of a name that it does not find. */
nvmlReturn_t told_answer(const char *function);
/* Whether it does answer, and in that way. */
bool answers_so(const char *function, enum simgpu_answer_kind kind);

/* First in each exported function: its own name is what the profile knows. */
#define ANSWER()                                   \
    do {                                           \
        nvmlReturn_t told = told_answer(__func__); \
        if (told != NVML_SUCCESS)                  \
            return told;                           \
    } while (0)

#define CHECK_LIBRARY()                         \
    do {                                        \
        nvmlReturn_t checked = check_library(); \
        if (checked != NVML_SUCCESS)            \
            return checked;                     \
    } while (0)

/* The device's GPU, or return why there is none; and INVALID_ARGUMENT for a place to write to that is not there. */
#define DEVICE(found, device, result)                \
    do {                                             \
        nvmlReturn_t checked = check_device(device); \
        if (checked != NVML_SUCCESS)                 \
            return checked;                          \
        if (!(result))                               \
            return NVML_ERROR_INVALID_ARGUMENT;      \
    } while (0);                                     \
    struct simgpu_gpu *found = &library.machine.shared->gpus[(device)->gpu]

/* Copies text, where the buffer holds all of it. */
nvmlReturn_t copy_text(char *to, unsigned int length, const char *text);

/* Nanoseconds of the last `window_ns` in which the GPU ran: of one process (its slot; -1: all), of kernels or of copies
 * and sets. The GPU has been run up to `now_ns`. */
uint64_t busy_ns(const struct simgpu_gpu *gpu, int32_t slot, bool kernels, uint64_t now_ns, uint64_t window_ns);

/* Over so long utilisation is given: a real driver's sample period is 1/6 s to 1 s, by model. */
#define UTILIZATION_WINDOW_NS 1000000000u

/* The MIG device that a handle is of; NULL: it is of a whole GPU. */
const struct simgpu_mig *mig_of(nvmlDevice_t device);

#endif
