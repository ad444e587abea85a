/* Who uses a device. */
#include <string.h>
#include <time.h>

#include "nvml/nvml.h"

/* MIG instances that a process is not in. */
#define NO_INSTANCE 0xffffffffu

enum { MOST_USERS = SIMGPU_CONTEXTS };

struct user {
    uint32_t slot;
    uint32_t pid;
    uint64_t memory_bytes;
};

/* Adds what a process uses, where its pid can be seen from here. Returns how many users there are then. */
static unsigned int add_user(struct user *users, unsigned int count, uint32_t slot, uint64_t memory_bytes) {
    unsigned int user = 0;
    int32_t pid;
    while (user < count && users[user].slot != slot)
        user++;
    if (user == count) {
        if (count == MOST_USERS || !machine_alive(&library.machine, slot, &pid) || pid <= 0)
            return count;
        users[count++] = (struct user){.slot = slot, .pid = (uint32_t)pid};
    }
    users[user].memory_bytes += memory_bytes;
    return count;
}

/* Processes with a context on the GPU, or memory with no context. */
static unsigned int find_users(const struct simgpu_gpu *gpu, struct user *users) {
    const struct simgpu_machine *shared = library.machine.shared;
    unsigned int count = 0;
    machine_reap_now(&library.machine);
    for (uint32_t index = 0; index < SIMGPU_CONTEXTS; index++) {
        const struct simgpu_context *context = &gpu->contexts[index];
        if (load_u32(&context->state) == SIMGPU_CONTEXT_LIVE)
            count = add_user(users, count, context->process, load_u64(&context->memory_bytes));
    }
    for (uint32_t slot = 0; load_u64(&gpu->detached_bytes) && slot < load_u32(&shared->slots); slot++) {
        uint64_t bytes = machine_detached_bytes(&library.machine, (uint32_t)(gpu - shared->gpus), slot);
        if (bytes)
            count = add_user(users, count, slot, bytes);
    }
    return count;
}

/* Says how many there are, and which, where there is room for all. */
static nvmlReturn_t list_users(nvmlDevice_t device, unsigned int *count, const void *room, struct user *users) {
    DEVICE(gpu, device, count);
    unsigned int given = *count;
    *count = mig_of(device) ? 0 : find_users(gpu, users);
    if (*count == 0)
        return NVML_SUCCESS;
    return !room || given < *count ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

/* As some drivers of R535 have it: 43.02 to 86.05. */
struct wide_info {
    nvmlProcessInfo_v2_t narrow;
    unsigned long long protected_memory;
};

static nvmlReturn_t running(nvmlDevice_t device, unsigned int *count, void *infos, const char *function) {
    struct user users[MOST_USERS];
    size_t stride = answers_so(function, SIMGPU_ANSWER_WIDE) ? sizeof(struct wide_info) : sizeof(nvmlProcessInfo_v2_t);
    bool silent = answers_so(function, SIMGPU_ANSWER_NO_MEMORY);
    nvmlReturn_t result = list_users(device, count, infos, users);
    for (unsigned int index = 0; result == NVML_SUCCESS && index < *count; index++) {
        nvmlProcessInfo_v2_t *info = (nvmlProcessInfo_v2_t *)((char *)infos + index * stride);
        memset(info, 0, stride);
        *info = (nvmlProcessInfo_v2_t){
            .pid = users[index].pid,
            .usedGpuMemory = silent ? NVML_VALUE_NOT_AVAILABLE : users[index].memory_bytes,
            .gpuInstanceId = NO_INSTANCE,
            .computeInstanceId = NO_INSTANCE,
        };
    }
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *infoCount,
                                                         nvmlProcessInfo_v1_t *infos) {
    ANSWER();
    struct user users[MOST_USERS];
    bool silent = answers_so(__func__, SIMGPU_ANSWER_NO_MEMORY);
    nvmlReturn_t result = list_users(device, infoCount, infos, users);
    for (unsigned int index = 0; result == NVML_SUCCESS && index < *infoCount; index++)
        infos[index] = (nvmlProcessInfo_v1_t){
            .pid = users[index].pid,
            .usedGpuMemory = silent ? NVML_VALUE_NOT_AVAILABLE : users[index].memory_bytes,
        };
    return result;
}
EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *infoCount,
                                                            nvmlProcessInfo_v2_t *infos) {
    ANSWER();
    return running(device, infoCount, infos, __func__);
}
EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *infoCount,
                                                            nvmlProcessInfo_t *infos) {
    ANSWER();
    return running(device, infoCount, infos, __func__);
}

/* Nobody draws, and there is no MPS. */
static nvmlReturn_t none_running(nvmlDevice_t device, unsigned int *count) {
    DEVICE(gpu, device, count);
    (void)gpu;
    *count = 0;
    return NVML_SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned int *infoCount,
                                                          nvmlProcessInfo_v1_t *infos) {
    ANSWER();
    (void)infos;
    return none_running(device, infoCount);
}
EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device, unsigned int *infoCount,
                                                             nvmlProcessInfo_v2_t *infos) {
    ANSWER();
    (void)infos;
    return none_running(device, infoCount);
}
EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int *infoCount,
                                                             nvmlProcessInfo_t *infos) {
    ANSWER();
    (void)infos;
    return none_running(device, infoCount);
}
EXPORT nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *infoCount,
                                                               nvmlProcessInfo_t *infos) {
    ANSWER();
    (void)infos;
    return none_running(device, infoCount);
}

EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *utilization,
                                                    unsigned int *processSamplesCount, unsigned long long lastSeenTimeStamp) {
    ANSWER();
    struct user users[MOST_USERS];
    unsigned int active = 0;
    DEVICE(gpu, device, processSamplesCount);
    machine_advance(&library.machine, device->gpu);
    uint64_t now_ns = clock_now_ns();
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    unsigned long long stamp_us = (unsigned long long)wall.tv_sec * 1000000 + (unsigned long long)wall.tv_nsec / 1000;
    unsigned int count = find_users(gpu, users);
    if (count == 0 || stamp_us <= lastSeenTimeStamp)
        return NVML_ERROR_NOT_FOUND;
    bool room = utilization && *processSamplesCount >= count;
    for (unsigned int index = 0; room && index < count; index++) {
        uint64_t kernels_ns = busy_ns(gpu, (int32_t)users[index].slot, true, now_ns, UTILIZATION_WINDOW_NS);
        uint64_t copies_ns = busy_ns(gpu, (int32_t)users[index].slot, false, now_ns, UTILIZATION_WINDOW_NS);
        if (!kernels_ns && !copies_ns)
            continue;
        utilization[active++] = (nvmlProcessUtilizationSample_t){
            .pid = users[index].pid,
            .timeStamp = stamp_us,
            .smUtil = (unsigned int)(kernels_ns * 100 / UTILIZATION_WINDOW_NS),
            .memUtil = (unsigned int)(copies_ns * 100 / UTILIZATION_WINDOW_NS),
        };
    }
    *processSamplesCount = room ? active : count;
    return !room ? NVML_ERROR_INSUFFICIENT_SIZE : active ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}
