/* How a device is: memory, load, and what follows from it. */
#include <string.h>

#include "nvml/nvml.h"

/* ---- memory ---- */

/* An integrated GPU has none of its own to tell of: nvidia-smi says N/A on Orin and Thor. */
#define NEEDS_MEMORY(gpu)                    \
    do {                                     \
        if ((gpu)->model.integrated)         \
            return NVML_ERROR_NOT_SUPPORTED; \
    } while (0)

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    ANSWER();
    DEVICE(gpu, device, memory);
    NEEDS_MEMORY(gpu);
    machine_reap_now(&library.machine);
    const struct simgpu_mig *mig = mig_of(device);
    /* This form counts what the driver keeps as used. */
    memory->total = mig ? mig->memory_bytes : gpu->model.memory_bytes;
    memory->used = mig ? 0 : gpu_used_bytes(gpu) + gpu->model.reserved_bytes;
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    ANSWER();
    DEVICE(gpu, device, memory);
    if (memory->version != (sizeof *memory | 2u << 24))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    NEEDS_MEMORY(gpu);
    machine_reap_now(&library.machine);
    const struct simgpu_mig *mig = mig_of(device);
    memory->total = mig ? mig->memory_bytes : gpu->model.memory_bytes;
    memory->reserved = mig ? 0 : gpu->model.reserved_bytes;
    memory->used = mig ? 0 : gpu_used_bytes(gpu);
    memory->free = memory->total - memory->reserved - memory->used;
    return NVML_SUCCESS;
}

/* ---- load ---- */

static uint64_t overlap_ns(uint64_t begin_ns, uint64_t end_ns, uint64_t from_ns) {
    if (begin_ns < from_ns)
        begin_ns = from_ns;
    return end_ns > begin_ns ? end_ns - begin_ns : 0;
}

/* Since when the GPU runs what it runs now of a process (−1: of any) and of this kind; UINT64_MAX: it runs none. */
static uint64_t begun_ns(const struct simgpu_gpu *gpu, int32_t slot, bool kernels) {
    int32_t running = gpu->running;
    uint64_t begun_ns = UINT64_MAX;
    if (running < 0 || (slot >= 0 && gpu->contexts[running].process != (uint32_t)slot))
        return begun_ns;
    const struct simgpu_context *context = &gpu->contexts[running];
    const struct simgpu_orders *orders = orders_of(gpu, (uint32_t)running);
    uint64_t end = orders ? load_u64(&context->tail) : context->completed + 1;
    for (uint64_t number = context->completed; number < end; number++) {
        const struct simgpu_entry *entry = &gpu->rings[running].entries[number % SIMGPU_RING];
        if ((entry->kind == SIMGPU_KERNEL) != kernels)
            continue;
        uint64_t from_ns = gpu->segment_begin_ns;
        if (orders && (entry->kind == SIMGPU_HOST || orders->orders[number % SIMGPU_RING].state != SIMGPU_RUNS))
            continue;
        if (orders && entry->begin_ns > from_ns)
            from_ns = entry->begin_ns;
        begun_ns = from_ns < begun_ns ? from_ns : begun_ns;
    }
    return begun_ns;
}

uint64_t busy_ns(const struct simgpu_gpu *gpu, int32_t slot, bool kernels, uint64_t now_ns, uint64_t window_ns) {
    uint64_t from_ns = now_ns > window_ns ? now_ns - window_ns : 0;
    uint64_t count = load_u64(&gpu->log_count), sum_ns = 0;
    uint64_t first = count > SIMGPU_LOG ? count - SIMGPU_LOG : 0;
    /* Intervals lie in the order of their ends, and may overlap: what is counted begins here. */
    uint64_t counted_ns = begun_ns(gpu, slot, kernels);
    if (counted_ns < gpu->time_ns)
        sum_ns = overlap_ns(counted_ns, gpu->time_ns, from_ns);
    for (uint64_t number = count; number > first; number--) {
        const struct simgpu_log_entry *entry = &gpu->log[(number - 1) % SIMGPU_LOG];
        if (entry->end_ns <= from_ns)
            break;
        if ((slot < 0 || entry->slot == (uint32_t)slot) && (entry->kind == SIMGPU_KERNEL) == kernels) {
            sum_ns += overlap_ns(entry->begin_ns, entry->end_ns < counted_ns ? entry->end_ns : counted_ns, from_ns);
            counted_ns = entry->begin_ns < counted_ns ? entry->begin_ns : counted_ns;
        }
    }
    return sum_ns < window_ns ? sum_ns : window_ns;
}

static unsigned int percent(const struct simgpu_gpu *gpu, bool kernels) {
    uint64_t used_ns = busy_ns(gpu, -1, kernels, clock_now_ns(), UTILIZATION_WINDOW_NS);
    return (unsigned int)(used_ns * 100 / UTILIZATION_WINDOW_NS);
}

EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization) {
    ANSWER();
    DEVICE(gpu, device, utilization);
    machine_advance(&library.machine, device->gpu);
    utilization->gpu = percent(gpu, true);
    utilization->memory = percent(gpu, false);
    return NVML_SUCCESS;
}

/* Idle at 30 °C and a tenth of the limit, at full load 75 °C and all of it, unless a fault makes it hotter. */
EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensorType, unsigned int *temp) {
    ANSWER();
    DEVICE(gpu, device, temp);
    if (sensorType != NVML_TEMPERATURE_GPU)
        return NVML_ERROR_INVALID_ARGUMENT;
    machine_advance(&library.machine, device->gpu);
    uint32_t set_c = load_u32(&gpu->temperature_c);
    *temp = set_c ? set_c : 30 + percent(gpu, true) * 45 / 100;
    return NVML_SUCCESS;
}

/* A tenth of the power limit all the time, the rest while it runs something. */
EXPORT nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *energy) {
    ANSWER();
    DEVICE(gpu, device, energy);
    machine_advance(&library.machine, device->gpu);
    uint64_t passed_us = (clock_now_ns() - load_u64(&gpu->reset_ns)) / 1000;
    uint64_t busy_us = (load_u64(&gpu->busy_ns) - load_u64(&gpu->reset_busy_ns)) / 1000;
    *energy = gpu->model.power_limit_mw / 10 * (passed_us + 9 * busy_us) / 1000000;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *power) {
    ANSWER();
    DEVICE(gpu, device, power);
    machine_advance(&library.machine, device->gpu);
    *power = gpu->model.power_limit_mw / 10 + gpu->model.power_limit_mw / 1000 * 9 * percent(gpu, true);
    return NVML_SUCCESS;
}

static nvmlReturn_t power_limit(nvmlDevice_t device, unsigned int *limit) {
    DEVICE(gpu, device, limit);
    *limit = gpu->model.power_limit_mw;
    return NVML_SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned int *limit) {
    ANSWER();
    return power_limit(device, limit);
}
EXPORT nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *limit) {
    ANSWER();
    return power_limit(device, limit);
}

static nvmlReturn_t clock_mhz(nvmlDevice_t device, nvmlClockType_t type, unsigned int *clock) {
    DEVICE(gpu, device, clock);
    if ((unsigned int)type > NVML_CLOCK_VIDEO)
        return NVML_ERROR_INVALID_ARGUMENT;
    *clock = (type == NVML_CLOCK_MEM ? gpu->model.memory_clock_khz : gpu->model.clock_khz) / 1000;
    return NVML_SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *clock) {
    ANSWER();
    return clock_mhz(device, type, clock);
}
EXPORT nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *clock) {
    ANSWER();
    return clock_mhz(device, type, clock);
}

EXPORT nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, nvmlPstates_t *pState) {
    ANSWER();
    DEVICE(gpu, device, pState);
    machine_advance(&library.machine, device->gpu);
    *pState = percent(gpu, true) ? NVML_PSTATE_0 : NVML_PSTATE_8;
    return NVML_SUCCESS;
}

/* Cards of servers have no fan. */
EXPORT nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int *speed) {
    ANSWER();
    DEVICE(gpu, device, speed);
    (void)gpu;
    return NVML_ERROR_NOT_SUPPORTED;
}

/* ---- ECC ---- */

EXPORT nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending) {
    ANSWER();
    DEVICE(gpu, device, current);
    if (!pending)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!gpu->model.ecc)
        return NVML_ERROR_NOT_SUPPORTED;
    *current = *pending = NVML_FEATURE_ENABLED;
    return NVML_SUCCESS;
}

static nvmlReturn_t ecc_errors(nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter,
                               unsigned long long *errors) {
    DEVICE(gpu, device, errors);
    if ((unsigned int)type > NVML_MEMORY_ERROR_TYPE_UNCORRECTED || (unsigned int)counter > NVML_AGGREGATE_ECC)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!gpu->model.ecc)
        return NVML_ERROR_NOT_SUPPORTED;
    bool corrected = type == NVML_MEMORY_ERROR_TYPE_CORRECTED;
    *errors = load_u64(corrected ? &gpu->ecc_single : &gpu->ecc_double);
    if (counter == NVML_VOLATILE_ECC)
        *errors -= load_u64(corrected ? &gpu->reset_ecc_single : &gpu->reset_ecc_double);
    return NVML_SUCCESS;
}

/* From Ampere on. All errors that cannot be corrected are in one row. */
EXPORT nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *corrRows, unsigned int *uncRows,
                                              unsigned int *isPending, unsigned int *failureOccurred) {
    ANSWER();
    DEVICE(gpu, device, corrRows);
    if (!uncRows || !isPending || !failureOccurred)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!gpu->model.ecc || strcmp(gpu->model.architecture, "volta") == 0 || strcmp(gpu->model.architecture, "turing") == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    *corrRows = 0;
    *uncRows = load_u32(&gpu->remapped_rows);
    *isPending = load_u32(&gpu->remap_pending);
    *failureOccurred = load_u32(&gpu->remap_failed);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t errorType,
                                                nvmlEccCounterType_t counterType, unsigned long long *eccCounts) {
    ANSWER();
    return ecc_errors(device, errorType, counterType, eccCounts);
}

EXPORT nvmlReturn_t nvmlDeviceGetDetailedEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t errorType,
                                                   nvmlEccCounterType_t counterType, nvmlEccErrorCounts_t *eccCounts) {
    ANSWER();
    unsigned long long errors = 0;
    nvmlReturn_t result = ecc_errors(device, errorType, counterType, eccCounts ? &errors : NULL);
    if (result == NVML_SUCCESS)
        *eccCounts = (nvmlEccErrorCounts_t){.deviceMemory = errors};
    return result;
}
