/* A plugin of reload.c that is linked to NVML. */
#include <stdio.h>
#include <stdlib.h>

#include "nvml/nvml_api.h"

void begin(void);
void go_on(void);

static unsigned long long total_mib(void) {
    nvmlMemory_t memory;
    nvmlDevice_t device;

    if (nvmlInit_v2() != NVML_SUCCESS || nvmlDeviceGetHandleByIndex_v2(0, &device) != NVML_SUCCESS ||
        nvmlDeviceGetMemoryInfo(device, &memory) != NVML_SUCCESS || nvmlShutdown() != NVML_SUCCESS)
        exit(3);
    return memory.total >> 20;
}

void begin(void) { printf("%llu MiB\n", total_mib()); }

void go_on(void) { printf("%llu MiB\n", total_mib()); }
