/* Who uses the machine: slots, liveness, contexts, memory. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "machine/engine/engine.h"
#include "machine/export.h"
#include "machine/lock.h"
#include "machine/machine.h"

/* A death is looked for at most so often, by all processes together. */
#define REAP_PERIOD_NS 1000000u

bool machine_alive(const struct machine *machine, uint32_t slot, int32_t *pid) {
    return record_held(machine->lock_fd, slot, pid);
}

static uint64_t next_id(struct machine *machine) { return __atomic_add_fetch(&machine->shared->last_id, 1, __ATOMIC_RELAXED); }

static void process_name(char *name, size_t size) {
    memset(name, 0, size);
    int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, name, size - 1);
    if (fd >= 0)
        close(fd);
    if (length > 0 && name[length - 1] == '\n')
        name[length - 1] = 0;
}

/* The slot for a new process: a free one, or else that of the process that has been dead the longest. */
static int32_t choose_slot(const struct simgpu_machine *shared) {
    int32_t oldest = -1;
    for (int32_t slot = 0; slot < SIMGPU_PROCESSES; slot++) {
        const struct simgpu_process *process = &shared->processes[slot];
        if (process->state == SIMGPU_PROCESS_FREE)
            return slot;
        if (process->state == SIMGPU_PROCESS_DEAD && (oldest < 0 || process->end_ns < shared->processes[oldest].end_ns))
            oldest = slot;
    }
    return oldest;
}

enum machine_status machine_join(struct machine *machine) {
    struct simgpu_machine *shared = machine->shared;
    const char *tag = getenv("SIMGPU_TAG");
    machine_reap_now(machine);
    word_lock(machine, &shared->lock);
    int32_t slot = choose_slot(shared);
    if (slot >= 0 && record_lock(machine->lock_fd, (uint32_t)slot)) {
        struct simgpu_process *process = &shared->processes[slot];
        memset(process, 0, sizeof *process);
        process->pid = (int32_t)getpid();
        process->start_ns = clock_now_ns();
        process->id = next_id(machine);
        snprintf(process->tag, sizeof process->tag, "%s", tag ? tag : "");
        process_name(process->name, sizeof process->name);
        if ((uint32_t)slot >= shared->slots)
            store_u32(&shared->slots, (uint32_t)slot + 1);
        store_u32(&process->state, SIMGPU_PROCESS_LIVE);
        machine->slot = slot;
    }
    word_unlock(&shared->lock);
    return machine->slot >= 0 ? MACHINE_OK : MACHINE_FULL;
}

static void condemn_contexts(struct machine *machine, uint32_t slot) {
    for (uint32_t index = 0; index < machine->shared->gpu_count; index++) {
        struct simgpu_gpu *gpu = &machine->shared->gpus[index];
        gpu_lock(machine, gpu);
        /* Nobody knows when between the last look and now it died: what was seen to run has run, the rest has not. */
        for (uint32_t context = 0; context < SIMGPU_CONTEXTS; context++) {
            if (gpu->contexts[context].state == SIMGPU_CONTEXT_LIVE && gpu->contexts[context].process == slot)
                engine_condemn(gpu, context);
        }
        uint64_t *own_bytes = &machine->shared->processes[slot].memory_bytes[index];
        gpu->detached_bytes -= *own_bytes;
        store_u64(own_bytes, 0);
        gpu_unlock(gpu);
    }
}

void machine_reap_now(struct machine *machine) {
    struct simgpu_machine *shared = machine->shared;
    store_u64(&shared->last_reap_ns, clock_now_ns());
    for (uint32_t slot = 0; slot < load_u32(&shared->slots); slot++) {
        struct simgpu_process *process = &shared->processes[slot];
        if (load_u32(&process->state) != SIMGPU_PROCESS_LIVE || machine_alive(machine, slot, NULL))
            continue;
        word_lock(machine, &shared->lock);
        /* Contexts first: if this process dies here, the next one finds the slot still to be done. */
        if (process->state == SIMGPU_PROCESS_LIVE && !machine_alive(machine, slot, NULL)) {
            condemn_contexts(machine, slot);
            exports_forget(machine, slot);
            process->end_ns = clock_now_ns();
            store_u32(&process->state, SIMGPU_PROCESS_DEAD);
        }
        word_unlock(&shared->lock);
    }
}

void machine_reap(struct machine *machine, uint64_t now_ns) {
    uint64_t last_ns = load_u64(&machine->shared->last_reap_ns);
    if (now_ns >= last_ns + REAP_PERIOD_NS)
        machine_reap_now(machine);
}

/* ---- contexts and memory ---- */

uint64_t gpu_total_bytes(const struct simgpu_gpu *gpu) { return gpu->model.memory_bytes - gpu->model.reserved_bytes; }

uint64_t gpu_used_bytes(const struct simgpu_gpu *gpu) {
    uint64_t used = load_u64(&gpu->detached_bytes);
    for (uint32_t word = 0; word < SIMGPU_CONTEXTS / 64; word++) {
        for (uint64_t rest = gpu->live[word]; rest; rest &= rest - 1)
            used += load_u64(&gpu->contexts[word * 64 + (uint32_t)__builtin_ctzll(rest)].memory_bytes);
    }
    return used;
}

static bool has_room(const struct simgpu_gpu *gpu, uint64_t bytes) {
    uint64_t total = gpu_total_bytes(gpu);
    return bytes <= total && gpu_used_bytes(gpu) <= total - bytes;
}

int machine_context_create(struct machine *machine, uint32_t gpu_index, bool *full) {
    struct simgpu_gpu *gpu = &machine->shared->gpus[gpu_index];
    int created = -1;
    *full = true;
    machine_reap(machine, clock_now_ns());
    gpu_lock(machine, gpu);
    uint64_t overhead = gpu->model.context_overhead_bytes;
    for (int index = 0; index < SIMGPU_CONTEXTS && created < 0 && !gpu->lost; index++) {
        struct simgpu_context *context = &gpu->contexts[index];
        if (context->state != SIMGPU_CONTEXT_FREE)
            continue;
        *full = false;
        if (!has_room(gpu, overhead))
            break;
        /* Numbers go on where the slot's last owner ended, so that a reader of the log never sees one twice. */
        store_u64(&context->tail, context->completed);
        context->process = (uint32_t)machine->slot;
        context->id = next_id(machine);
        context->overhead_bytes = overhead;
        context->error = 0;
        context->head_done_ns = 0;
        context->completed_ns = 0;
        context->host_done = 0;
        context->turn = gpu->turns++;
        gpu->live[index / 64] |= 1ull << (index % 64);
        store_u64(&context->memory_bytes, overhead);
        store_u32(&context->state, SIMGPU_CONTEXT_LIVE);
        created = index;
    }
    gpu_unlock(gpu);
    return created;
}

void machine_context_destroy(struct machine *machine, uint32_t gpu_index, uint32_t context) {
    machine_advance_and_lock(machine, gpu_index);
    engine_condemn(&machine->shared->gpus[gpu_index], context);
    gpu_unlock(&machine->shared->gpus[gpu_index]);
}

bool machine_take_memory(struct machine *machine, uint32_t gpu_index, uint32_t context, uint64_t bytes) {
    struct simgpu_gpu *gpu = &machine->shared->gpus[gpu_index];
    for (int attempt = 0; attempt < 2; attempt++) {
        gpu_lock(machine, gpu);
        bool room = has_room(gpu, bytes);
        if (room)
            store_u64(&gpu->contexts[context].memory_bytes, gpu->contexts[context].memory_bytes + bytes);
        gpu_unlock(gpu);
        if (room)
            return true;
        /* Perhaps a process that died still has it: look now, whenever somebody last did. */
        machine_reap_now(machine);
    }
    return false;
}

void machine_give_memory(struct machine *machine, uint32_t gpu_index, uint32_t context, uint64_t bytes) {
    struct simgpu_gpu *gpu = &machine->shared->gpus[gpu_index];
    gpu_lock(machine, gpu);
    store_u64(&gpu->contexts[context].memory_bytes, gpu->contexts[context].memory_bytes - bytes);
    gpu_unlock(gpu);
}

bool machine_take_own_memory(struct machine *machine, uint32_t gpu_index, uint64_t bytes) {
    struct simgpu_gpu *gpu = &machine->shared->gpus[gpu_index];
    uint64_t *own_bytes = &machine->shared->processes[machine->slot].memory_bytes[gpu_index];
    for (int attempt = 0; attempt < 2; attempt++) {
        gpu_lock(machine, gpu);
        bool room = has_room(gpu, bytes);
        if (room) {
            store_u64(own_bytes, *own_bytes + bytes);
            store_u64(&gpu->detached_bytes, gpu->detached_bytes + bytes);
        }
        gpu_unlock(gpu);
        if (room)
            return true;
        machine_reap_now(machine);
    }
    return false;
}

void machine_give_own_memory(struct machine *machine, uint32_t gpu_index, uint64_t bytes) {
    struct simgpu_gpu *gpu = &machine->shared->gpus[gpu_index];
    uint64_t *own_bytes = &machine->shared->processes[machine->slot].memory_bytes[gpu_index];
    gpu_lock(machine, gpu);
    store_u64(own_bytes, *own_bytes - bytes);
    store_u64(&gpu->detached_bytes, gpu->detached_bytes - bytes);
    gpu_unlock(gpu);
}

uint64_t machine_detached_bytes(const struct machine *machine, uint32_t gpu, uint32_t slot) {
    const struct simgpu_machine *shared = machine->shared;
    uint64_t bytes = load_u64(&shared->processes[slot].memory_bytes[gpu]);
    for (uint32_t index = 0; index < load_u32(&shared->export_slots); index++) {
        const struct simgpu_export *entry = &shared->exports[index];
        if (load_u32(&entry->kind) != SIMGPU_EXPORT_NONE && entry->gpu == gpu && load_u32(&entry->charged) == slot)
            bytes += entry->bytes;
    }
    return bytes;
}

void machine_fault(struct machine *machine, uint32_t gpu_index, uint32_t kind, uint32_t xid, uint32_t error, bool lost) {
    struct simgpu_gpu *gpu = &machine->shared->gpus[gpu_index];
    gpu_lock(machine, gpu);
    gpu->faults[gpu->fault_count % SIMGPU_FAULTS] = (struct simgpu_fault){.time_ns = clock_now_ns(), .kind = kind, .xid = xid};
    if (kind == SIMGPU_FAULT_ECC_SINGLE)
        gpu->ecc_single++;
    if (kind == SIMGPU_FAULT_ECC_DOUBLE)
        gpu->ecc_double++;
    /* Before the contexts are told: who knows of the error must not find the GPU well. */
    if (lost)
        store_u32(&gpu->lost, error);
    for (uint32_t context = 0; error && context < SIMGPU_CONTEXTS; context++) {
        if (gpu->contexts[context].state == SIMGPU_CONTEXT_LIVE)
            store_u32(&gpu->contexts[context].error, error);
    }
    store_u64(&gpu->fault_count, gpu->fault_count + 1);
    gpu_unlock(gpu);
    __atomic_add_fetch(&machine->shared->faults, 1, __ATOMIC_RELEASE);
    futex_wake_all(&machine->shared->faults);
}

void machine_reset(struct machine *machine, uint32_t gpu_index, uint32_t error) {
    struct simgpu_gpu *gpu = &machine->shared->gpus[gpu_index];
    machine_advance_and_lock(machine, gpu_index);
    for (uint32_t context = 0; context < SIMGPU_CONTEXTS; context++) {
        if (gpu->contexts[context].state == SIMGPU_CONTEXT_LIVE && !gpu->contexts[context].error)
            store_u32(&gpu->contexts[context].error, error);
    }
    gpu->remapped_rows += gpu->remap_pending;
    store_u32(&gpu->remap_pending, 0);
    store_u64(&gpu->reset_ecc_single, gpu->ecc_single);
    store_u64(&gpu->reset_ecc_double, gpu->ecc_double);
    store_u64(&gpu->reset_busy_ns, gpu->busy_ns);
    store_u64(&gpu->reset_ns, clock_now_ns());
    /* Last: who finds it there finds it as it is after the reset. */
    store_u32(&gpu->lost, 0);
    gpu_unlock(gpu);
}
