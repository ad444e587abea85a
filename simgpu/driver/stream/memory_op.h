/* Waits for a value in memory and writes of one, in a stream's order. */
#ifndef SIMGPU_MEMORY_OP_H
#define SIMGPU_MEMORY_OP_H

#include <stdbool.h>
#include <stdint.h>

enum memory_op_kind { OP_NONE, OP_WAIT, OP_WRITE, OP_ACQUIRE /* waits for 1 and makes it 0 */ };

struct memory_op {
    enum memory_op_kind kind;
    unsigned int bytes;   /* 4 or 8 */
    unsigned int compare; /* CUstreamWaitValue_flags */
    uint64_t address;
    uint64_t value;
};

/* Does a write; tries a wait: true when it is done. `seen` is what stood there (the lower half). */
bool memory_op_try(const struct memory_op *op, uint32_t *seen);
/* Sleeps until somebody may have written there, but not for long: not everybody tells. */
void memory_op_nap(const struct memory_op *op, uint32_t seen);

#endif
