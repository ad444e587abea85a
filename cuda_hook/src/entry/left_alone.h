#ifndef EDGESHARE_LEFT_ALONE_H
#define EDGESHARE_LEFT_ALONE_H

#include <stdbool.h>

/* Is this name, as cuGetProcAddress is asked for it, one of those that are left alone on purpose (left_alone.def)? */
bool es_left_alone(const char *name);

#endif
