#ifndef EDGESHARE_ALLOCATION_H
#define EDGESHARE_ALLOCATION_H

#include <stdbool.h>
#include <stddef.h>

#include "core/config.h"

/* The folder of this process's allocation: EDGESHARE_HOOK_DIR, else where a container has it mounted. */
const char *es_allocation_folder(void);

/* Is there one? */
bool es_allocation_exists(void);

/* The path of a file in it; false when it does not fit. */
bool es_allocation_path(char *path, size_t size, const char *file);

/* What hook.conf says, or the defaults. */
void es_allocation_config(struct es_config *config);

#endif
