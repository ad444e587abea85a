#ifndef EDGESHARE_SUBSTITUTES_H
#define EDGESHARE_SUBSTITUTES_H

#include "driver/symbols.h"

/* Which wrapper (api/) stands for which function of the driver. */

/* The symbol of this name that has a wrapper, else -1. */
int es_symbol_named(const char *name);

/* The wrapper that stands for this function of the library that `like` is of, or that this is already; else NULL. */
void *es_wrapper_of(enum es_symbol like, const void *function);

/* The wrapper of a symbol; NULL for one that is only used. */
void *es_wrapper(enum es_symbol symbol);

#endif
