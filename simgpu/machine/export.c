#include "machine/export.h"

#include <string.h>

#include "machine/lock.h"

struct simgpu_export *export_find(const struct machine *machine, int32_t index, uint64_t id) {
    if (index < 0 || index >= SIMGPU_EXPORTS)
        return NULL;
    struct simgpu_export *found = &machine->shared->exports[index];
    return load_u32(&found->kind) != SIMGPU_EXPORT_NONE && load_u64(&found->id) == id ? found : NULL;
}

static struct simgpu_holder *holder_in(struct simgpu_export *entry, uint32_t slot) {
    for (int index = 0; index < SIMGPU_IMPORTERS; index++) {
        if (entry->holders[index].count && entry->holders[index].process == slot)
            return &entry->holders[index];
    }
    return NULL;
}

/* After a holder has left: the bytes count for another one, or the entry is over. */
static bool settle(struct machine *machine, struct simgpu_export *entry) {
    struct simgpu_holder *any = NULL;
    for (int index = 0; index < SIMGPU_IMPORTERS && !any; index++) {
        if (entry->holders[index].count)
            any = &entry->holders[index];
    }
    if (any) {
        if (!holder_in(entry, entry->charged))
            store_u32(&entry->charged, any->process);
        return false;
    }
    struct simgpu_gpu *gpu = &machine->shared->gpus[entry->gpu];
    gpu_lock(machine, gpu);
    store_u32(&entry->kind, SIMGPU_EXPORT_NONE);
    store_u64(&gpu->detached_bytes, gpu->detached_bytes - entry->bytes);
    gpu_unlock(gpu);
    return true;
}

int32_t export_make(struct machine *machine, enum simgpu_export_kind kind, uint32_t gpu, uint64_t bytes) {
    struct simgpu_machine *shared = machine->shared;
    int32_t made = -1;
    machine_reap(machine, clock_now_ns());
    word_lock(machine, &shared->lock);
    for (int32_t index = 0; index < SIMGPU_EXPORTS && made < 0; index++) {
        if (shared->exports[index].kind == SIMGPU_EXPORT_NONE)
            made = index;
    }
    if (made >= 0) {
        struct simgpu_export *entry = &shared->exports[made];
        uint32_t slot = (uint32_t)machine->slot;
        memset(entry, 0, sizeof *entry);
        entry->gpu = gpu;
        entry->bytes = bytes;
        entry->charged = slot;
        entry->holders[0] = (struct simgpu_holder){.process = slot, .count = 1};
        store_u64(&entry->id, __atomic_add_fetch(&shared->last_id, 1, __ATOMIC_RELAXED));
        if ((uint32_t)made >= shared->export_slots)
            store_u32(&shared->export_slots, (uint32_t)made + 1);
        /* The GPU's sum stays as it is. */
        gpu_lock(machine, &shared->gpus[gpu]);
        store_u32(&entry->kind, kind);
        store_u64(&shared->processes[slot].memory_bytes[gpu], shared->processes[slot].memory_bytes[gpu] - bytes);
        gpu_unlock(&shared->gpus[gpu]);
    }
    word_unlock(&shared->lock);
    return made;
}

bool export_hold(struct machine *machine, int32_t index, uint64_t id) {
    word_lock(machine, &machine->shared->lock);
    struct simgpu_export *entry = export_find(machine, index, id);
    struct simgpu_holder *holder = entry ? holder_in(entry, (uint32_t)machine->slot) : NULL;
    for (int place = 0; entry && !holder && place < SIMGPU_IMPORTERS; place++) {
        if (!entry->holders[place].count) {
            holder = &entry->holders[place];
            holder->process = (uint32_t)machine->slot;
        }
    }
    if (holder)
        store_u32(&holder->count, holder->count + 1);
    word_unlock(&machine->shared->lock);
    return holder != NULL;
}

bool export_drop(struct machine *machine, int32_t index, uint64_t id) {
    word_lock(machine, &machine->shared->lock);
    struct simgpu_export *entry = export_find(machine, index, id);
    struct simgpu_holder *holder = entry ? holder_in(entry, (uint32_t)machine->slot) : NULL;
    bool over = false;
    if (holder) {
        store_u32(&holder->count, holder->count - 1);
        over = settle(machine, entry);
    }
    word_unlock(&machine->shared->lock);
    return over;
}

void exports_forget(struct machine *machine, uint32_t slot) {
    for (uint32_t index = 0; index < machine->shared->export_slots; index++) {
        struct simgpu_export *entry = &machine->shared->exports[index];
        struct simgpu_holder *holder = entry->kind == SIMGPU_EXPORT_NONE ? NULL : holder_in(entry, slot);
        if (!holder)
            continue;
        store_u32(&holder->count, 0);
        settle(machine, entry);
    }
}
