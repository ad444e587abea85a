/* Waits for a value in memory and writes of one, in a stream's order. */
#ifndef SIMGPU_MEMORY_OP_H
#define SIMGPU_MEMORY_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/capture/work.h"

/* Does a write; tries a wait: true when it is done. `seen` is what stood there (the lower half). */
bool memory_op_try(const struct memory_op *op, uint32_t *seen);
/* Sleeps until somebody may have written there, but not for long: not everybody tells. */
void memory_op_nap(const struct memory_op *op, uint32_t seen);

#endif
