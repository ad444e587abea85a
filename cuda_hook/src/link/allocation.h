#ifndef EDGESHARE_ALLOCATION_H
#define EDGESHARE_ALLOCATION_H

#include <stdbool.h>
#include <stddef.h>

#include "core/shared/config.h"

/* Has this process an allocation: is there its folder (settings.h)? */
bool es_allocation_exists(void);

/* The path of a file in it; false when it does not fit. */
bool es_allocation_path(char *path, size_t size, const char *file);

/* What hook.conf says, or the defaults. */
void es_allocation_config(struct es_config *config);

#endif
