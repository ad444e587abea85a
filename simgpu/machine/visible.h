/* Which of a machine's GPUs a process may see. */
#ifndef SIMGPU_VISIBLE_H
#define SIMGPU_VISIBLE_H

#include "machine/machine.h"

/* GPUs that the container runtime would have put into this container: NVIDIA_VISIBLE_DEVICES (all, none, void, or a list
 * of indices and UUIDs; not set: all), in the machine's order, as the runtime has it. */
int visible_to_container(const struct simgpu_machine *shared, uint32_t *gpus);

/* Of those, what CUDA_VISIBLE_DEVICES leaves, in its order: a list of indices among them and UUIDs (or unique beginnings
 * of UUIDs), cut off at the first that is not there. */
int visible_to_cuda(const struct simgpu_machine *shared, uint32_t *gpus);

#endif
