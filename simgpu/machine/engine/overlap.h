/* The engine of a GPU whose engines overlap. Under the GPU's lock, like engine.h, which leads here. */
#ifndef SIMGPU_OVERLAP_H
#define SIMGPU_OVERLAP_H

#include "machine/machine.h"

void overlap_advance(struct simgpu_gpu *gpu, struct simgpu_process *processes, uint32_t gpu_index, uint32_t scheduling,
                     uint64_t now_ns);
uint64_t overlap_earliest_end_ns(const struct simgpu_gpu *gpu, uint32_t scheduling, uint32_t index, uint64_t entry);

/* Whether a context has the GPU and runs something on it. */
bool overlap_runs(const struct simgpu_gpu *gpu, uint32_t index);

#endif
