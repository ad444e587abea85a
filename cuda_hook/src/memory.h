#ifndef EDGESHARE_MEMORY_H
#define EDGESHARE_MEMORY_H

#include "driver_api.h"

/* The client's side of the memory ledger. */

/* Tells a manager that was joined anew what this process already has. */
void es_memory_declare(void);

/* The driver frees what a context owned when it ends. */
void es_memory_context_ended(CUcontext context);

/* In a forked child: the parent's memory is not here. */
void es_memory_reset(void);

#endif
