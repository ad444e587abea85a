#ifndef EDGESHARE_MEMORY_H
#define EDGESHARE_MEMORY_H

#include <stdbool.h>

#include "driver_api.h"

/* The client's side of the memory ledger. */

/* Tells a manager that was joined anew what this process already has. */
void es_memory_declare(void);

/* What the allocation uses of a device: as the manager has it, or without one what this process does. False where nobody
 * counts. */
bool es_memory_used(uint32_t device, unsigned long long *bytes);

/* The driver frees what a context owned when it ends. */
void es_memory_context_ended(CUcontext context);

/* In a forked child: the parent's memory is not here. */
void es_memory_reset(void);

#endif
