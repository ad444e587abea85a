#ifndef EDGESHARE_WRAPPERS_H
#define EDGESHARE_WRAPPERS_H

#include "driver/nvml_api.h"
#include "driver_api.h"

/* The wrappers, es_<name>: hidden, and exported as <name> by an alias. */
#define ES_NAME(name) extern __typeof__(name) es_##name __attribute__((visibility("hidden")));
#define ES_UNWRAPPED(name)
#include "driver/symbol_names.h"

#endif
