/* The engine's steps: what each of them writes is put together first, in the shared file, and then done at once. Under the GPU's lock. */
#ifndef SIMGPU_STEPS_H
#define SIMGPU_STEPS_H

#include "machine/machine.h"

/* The GPU's next step, as one that changes nothing, of a context where there is one (-1: none). What it says of an entry is
 * set by who sets `writes_entry`, its log entry by step_log. */
struct simgpu_step *step_unchanged(struct simgpu_gpu *gpu, const struct simgpu_process *processes, uint32_t gpu_index,
                                   int32_t index);
void step_commit(struct simgpu_gpu *gpu, struct simgpu_process *processes, uint32_t gpu_index);

/* What steps do. The entry `ring_number` ran from `begin_ns` until the step's time, which the log has from now on. */
void step_log(struct simgpu_step *step, const struct simgpu_gpu *gpu, const struct simgpu_process *processes, uint64_t begin_ns,
              bool last);
/* The GPU goes on with a context, after a switch where another one ran last. */
void step_begin_turn(struct simgpu_step *step, const struct simgpu_gpu *gpu, int32_t index);
/* The running context gives the GPU up: its turn is over, or it has nothing that is ready. */
void step_end_turn(struct simgpu_step *step, const struct simgpu_gpu *gpu);

/* By itself no step: a context is over. */
void step_free_context(struct simgpu_gpu *gpu, uint32_t index);

#endif
