#ifndef EDGESHARE_OBJECTS_H
#define EDGESHARE_OBJECTS_H

#include <stdbool.h>

#include "loader/exports.h"

/* The shared objects of this process. */

/* The first object whose file name begins so; false when there is none. */
bool es_object_named(const char *prefix, struct es_object *object);

/* Keeps that object loaded, however often the program closes it; false where there is none. */
bool es_object_keep(const char *prefix);

/* How many objects were unloaded so far: while it is the same, what was found is there. */
uint64_t es_objects_unloaded(void);

/* Is the address within an object that stands before the hook in the order of look-up: the program, or a library that was
 * preloaded before it? */
bool es_object_before_hook(const void *address);

#endif
