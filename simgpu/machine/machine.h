/* A simulated machine as C sees it: the shared file, its locks, its processes and its clock. */
#ifndef SIMGPU_MACHINE_H
#define SIMGPU_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "machine/plan.h"

#include "machine/layout.h" /* made of those */

_Static_assert(sizeof(struct simgpu_entry) == 48, "an entry is read by other builds of this library");
_Static_assert(sizeof(struct simgpu_order) == 32, "so is what it is behind");
_Static_assert(sizeof(struct simgpu_context) == 192, "a context is three lines");
_Static_assert(offsetof(struct simgpu_gpu, contexts) % 64 == 0, "a context starts a line");
_Static_assert(sizeof(struct simgpu_gpu) % 64 == 0 && sizeof(struct simgpu_machine) % 64 == 0, "so in every GPU");
_Static_assert(offsetof(struct simgpu_gpu, lock) % 64 == 0 && offsetof(struct simgpu_gpu, time_ns) % 64 == 0, "the lock's line");
_Static_assert(offsetof(struct simgpu_context, tail) % 64 == 0, "the owner's line");
_Static_assert(offsetof(struct simgpu_context, completed) % 64 == 0, "the engine's line");
_Static_assert(sizeof(struct simgpu_log_entry) == 48, "a log entry is read by Python");

/* A machine that this process has open. `lock_fd` is never closed while the process lives: closing any descriptor of
 * that file would drop the process's record locks, which say that it is alive. */
struct machine {
    struct simgpu_machine *shared;
    int lock_fd;
    uint32_t holder; /* what this process writes into a lock; 0: not claimed yet */
    int32_t slot;    /* of this process; -1: none */
};

enum machine_status { MACHINE_OK = 0, MACHINE_MISSING, MACHINE_WRONG_VERSION, MACHINE_SYSTEM_ERROR, MACHINE_FULL };

/* Opens the machine in `directory` (NULL: $SIMGPU_MACHINE, or else /dev/shm/simgpu). */
enum machine_status machine_open(struct machine *machine, const char *directory);

/* Appends a line to what is noted of misuses in the machine that this process opened last. */
void machine_note_misuse(const char *line, size_t length);

/* Makes one. Errors are errno values; 0: made. */
int machine_create(const char *directory, const struct simgpu_plan *plan);

/* In a forked child: forget what belongs to the parent. */
void machine_forked(struct machine *machine);

/* Takes a slot for this process, for its life. */
enum machine_status machine_join(struct machine *machine);

/* Whether the process in `slot` lives; `pid` (may be NULL) becomes its pid as this process would see it, 0 where it
 * cannot be seen. */
bool machine_alive(const struct machine *machine, uint32_t slot, int32_t *pid);

/* Notes processes that died: their contexts are emptied and freed by the engine. The first looks only when nobody has
 * for a while. */
void machine_reap(struct machine *machine, uint64_t now_ns);
void machine_reap_now(struct machine *machine);

/* Brings a GPU's simulation up to now. The caller does not hold its lock. */
void machine_advance(struct machine *machine, uint32_t gpu);
/* Brings a GPU's simulation up to now, and keeps the lock. */
void machine_advance_and_lock(struct machine *machine, uint32_t gpu);

/* A GPU's lock, safe against the death of its holder: what a dead one left half done is repaired first. */
void gpu_lock(struct machine *machine, struct simgpu_gpu *gpu);
void gpu_unlock(struct simgpu_gpu *gpu);

/* Contexts, under no lock of the caller's. Returns the index or -1 when there is no room in memory (`full` false) or
 * none can be made at all (`full` true): the table is full, the GPU lost. */
int machine_context_create(struct machine *machine, uint32_t gpu, bool *full);
void machine_context_destroy(struct machine *machine, uint32_t gpu, uint32_t context);

/* Memory of one GPU for contexts, and what they have. */
uint64_t gpu_total_bytes(const struct simgpu_gpu *gpu);
uint64_t gpu_used_bytes(const struct simgpu_gpu *gpu);
/* Takes some for one context, or gives it back: false when there is not that much. Under no lock of the caller's. */
bool machine_take_memory(struct machine *machine, uint32_t gpu, uint32_t context, uint64_t bytes);
void machine_give_memory(struct machine *machine, uint32_t gpu, uint32_t context, uint64_t bytes);

/* Takes memory of one GPU for this process itself, outside every context, or gives it back. */
bool machine_take_own_memory(struct machine *machine, uint32_t gpu, uint64_t bytes);
void machine_give_own_memory(struct machine *machine, uint32_t gpu, uint64_t bytes);
/* What a process has of a GPU's memory outside its contexts. */
uint64_t machine_detached_bytes(const struct machine *machine, uint32_t gpu, uint32_t slot);

/* Sleeps while the word has this value, at most so long; wakes all who do. */
void futex_wait_for(uint32_t *word, uint32_t value, uint64_t timeout_ns);
void futex_wake_all(uint32_t *word);

/* Injects a fault. `error` is the CUresult that contexts get; 0: none. */
void machine_fault(struct machine *machine, uint32_t gpu, uint32_t kind, uint32_t xid, uint32_t error, bool lost);

/* Resets a GPU: what was lost is back, what waited for it is done, and counts since the driver's start begin anew. Live
 * contexts get `error`, if they have none yet. */
void machine_reset(struct machine *machine, uint32_t gpu, uint32_t error);

/* What a context's entries are behind; NULL where engines do not overlap. */
static inline struct simgpu_orders *orders_of(const struct simgpu_gpu *gpu, uint32_t context) {
    return gpu->orders_bytes ? (struct simgpu_orders *)((uintptr_t)gpu + gpu->orders_bytes) + context : NULL;
}

static inline uint64_t clock_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A simulated clock may have this: it passes at once all the looks at the clock that clock_spin_until would make. */
extern void clock_pass_until(uint64_t time_ns) __attribute__((weak, visibility("default")));

/* Looks at the clock until it is so late. */
static inline void clock_spin_until(uint64_t time_ns) {
    if (clock_pass_until)
        clock_pass_until(time_ns);
    else
        while (clock_now_ns() < time_ns) {}
}

static inline uint64_t load_u64(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
static inline void store_u64(uint64_t *word, uint64_t value) { __atomic_store_n(word, value, __ATOMIC_RELEASE); }
static inline uint32_t load_u32(const uint32_t *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
static inline void store_u32(uint32_t *word, uint32_t value) { __atomic_store_n(word, value, __ATOMIC_RELEASE); }

#endif
