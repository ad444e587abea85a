#ifndef EDGESHARE_WRAPPERS_H
#define EDGESHARE_WRAPPERS_H

#include "driver_api.h"
#include "nvml_api.h"

/* The wrappers, es_<name>: hidden, and exported as <name> by an alias. */
#define ES_DECLARE(name) extern __typeof__(name) es_##name __attribute__((visibility("hidden")));
#define ES_PTSZ(kind, name, parameters, arguments, key, stream) ES_DECLARE(name) ES_DECLARE(name##_ptsz)
#define ES_PTDS(kind, name, parameters, arguments, key) ES_DECLARE(name) ES_DECLARE(name##_ptds)
#define ES_ONE(kind, name, parameters, arguments, key, stream) ES_DECLARE(name)
#define ES_OWN(name) ES_DECLARE(name)
#define ES_USED(name)
#define ES_NVML(name) ES_DECLARE(name)
#define ES_NVML_USED(name)
#include "symbols.def"
#undef ES_PTSZ
#undef ES_PTDS
#undef ES_ONE
#undef ES_OWN
#undef ES_USED
#undef ES_NVML
#undef ES_NVML_USED
#undef ES_DECLARE

#endif
