/* Included where each name of symbols.def is needed, in the order of es_symbol, as ES_NAME(name). Where names without a
 * wrapper are to be something else, they are ES_UNWRAPPED(name), which may be nothing. Both are undefined at the end. */
#ifndef ES_UNWRAPPED
#define ES_UNWRAPPED(name) ES_NAME(name)
#endif
#define ES_PTSZ(kind, name, parameters, arguments, key, stream) ES_NAME(name) ES_NAME(name##_ptsz)
#define ES_PTDS(kind, name, parameters, arguments, key) ES_NAME(name) ES_NAME(name##_ptds)
#define ES_ONE(kind, name, parameters, arguments, key, stream) ES_NAME(name)
#define ES_OWN(name) ES_NAME(name)
#define ES_USED(name) ES_UNWRAPPED(name)
#define ES_NVML(name) ES_NAME(name)
#define ES_NVML_USED(name) ES_UNWRAPPED(name)
#include "driver/symbols.def"
#undef ES_PTSZ
#undef ES_PTDS
#undef ES_ONE
#undef ES_OWN
#undef ES_USED
#undef ES_NVML
#undef ES_NVML_USED
#undef ES_NAME
#undef ES_UNWRAPPED
