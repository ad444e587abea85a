/* The engine: what a GPU has executed by a given time. Functions of (state, now), with no clock and no IO: all of this folder,
 * which begins here. engine.c runs a GPU that does one thing at a time, overlap.c one whose engines overlap, by what view.h finds
 * in the queues. Both write what they do as steps (steps.h); foretell.c says when queued work will be done. */
#ifndef SIMGPU_ENGINE_H
#define SIMGPU_ENGINE_H

#include "machine/machine.h"

/* From the call to the first instruction on an idle GPU: about 2 µs of a real launch's 3 to 5 are the GPU's own. */
#define ENGINE_LAUNCH_LATENCY_NS 2000u
/* One turn of a context beside others, with no MPS (node-slice.md, 3: about 2 ms each). */
#define ENGINE_TURN_NS 2000000u
/* A host function may return at any time: look again so much later. */
#define ENGINE_HOST_POLL_NS 200000u
/* So many blocks run at a time on a multiprocessor. */
#define ENGINE_BLOCKS 8u

/* Runs the GPU up to `now_ns`. Under the GPU's lock. */
void engine_advance(struct simgpu_gpu *gpu, struct simgpu_process *processes, uint32_t gpu_index, uint32_t scheduling,
                    uint64_t now_ns);

/* The earliest time at which `entry` of `context` can be done, as far as is known now: exact when nothing else comes
 * in between, and contexts that alternate pay for no switch; never later than it can be but for others' deaths. The GPU
 * has been run up to now. */
uint64_t engine_earliest_end_ns(const struct simgpu_gpu *gpu, uint32_t scheduling, uint32_t context, uint64_t entry);

/* Whether other contexts have queued work. */
bool engine_others_queued(const struct simgpu_gpu *gpu, uint32_t context);

/* Whether there is no other context on the GPU. Needs no lock: what it says was true at some moment of the call. */
bool engine_is_one_contexts(const struct simgpu_gpu *gpu, uint32_t context);

/* Whether another context ran last, or the switch to this one is under way. The GPU has been run up to now. */
bool engine_is_away(const struct simgpu_gpu *gpu, uint32_t context);

/* Drops what a dead process's context has queued, after the kernel that runs now; the engine frees it then. */
void engine_condemn(struct simgpu_gpu *gpu, uint32_t context);

/* Does a step that a dead process had written down and perhaps not done. */
void engine_recover(struct simgpu_gpu *gpu, struct simgpu_process *processes, uint32_t gpu_index);

#endif
