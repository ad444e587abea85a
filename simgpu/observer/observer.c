#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "machine/machine.h"

struct observer {
    struct machine machine;
};

#pragma GCC visibility push(default)
#include "observer/observer.h"
#pragma GCC visibility pop

struct observer *simgpu_open(const char *directory, int *status) {
    struct observer *observer = malloc(sizeof *observer);
    *status = observer ? (int)machine_open(&observer->machine, directory) : MACHINE_SYSTEM_ERROR;
    if (*status != MACHINE_OK) {
        free(observer);
        return NULL;
    }
    return observer;
}

const struct simgpu_machine *simgpu_shared(const struct observer *observer) { return observer->machine.shared; }

int simgpu_create(const char *directory, const struct simgpu_plan *plan) { return machine_create(directory, plan); }

uint64_t simgpu_look(struct observer *observer) {
    machine_reap_now(&observer->machine);
    for (uint32_t gpu = 0; gpu < observer->machine.shared->gpu_count; gpu++)
        machine_advance(&observer->machine, gpu);
    return clock_now_ns();
}

int32_t simgpu_pid(const struct observer *observer, uint32_t slot) {
    int32_t pid = 0;
    machine_alive(&observer->machine, slot, &pid);
    return pid;
}

void simgpu_inject(struct observer *observer, uint32_t gpu, uint32_t kind, uint32_t xid, uint32_t error, int lost) {
    machine_fault(&observer->machine, gpu, kind, xid, error, lost != 0);
}

void simgpu_reset(struct observer *observer, uint32_t gpu, uint32_t error) { machine_reset(&observer->machine, gpu, error); }

void simgpu_set_temperature(struct observer *observer, uint32_t gpu, uint32_t temperature_c) {
    store_u32(&observer->machine.shared->gpus[gpu].temperature_c, temperature_c);
}

void simgpu_set_silent(struct observer *observer, uint32_t gpu, int silent) {
    store_u32(&observer->machine.shared->gpus[gpu].silent, silent != 0);
}

void simgpu_remap(struct observer *observer, uint32_t gpu, int failed) {
    struct simgpu_gpu *shared = &observer->machine.shared->gpus[gpu];
    store_u32(failed ? &shared->remap_failed : &shared->remap_pending, 1);
}

int simgpu_set_answer(struct observer *observer, const char *function, uint32_t answer) {
    struct simgpu_nvml *nvml = &observer->machine.shared->nvml;
    uint32_t count = load_u32(&nvml->count), index = 0;
    while (index < count && strcmp(nvml->answers[index].function, function) != 0)
        index++;
    if (index == SIMGPU_ANSWERS || strlen(function) >= sizeof nvml->answers[index].function)
        return ENOSPC;
    /* Others read it meanwhile: its name comes before it counts. */
    if (index == count)
        strcpy(nvml->answers[index].function, function);
    store_u32(&nvml->answers[index].answer, answer);
    if (index == count)
        store_u32(&nvml->count, count + 1);
    return 0;
}
