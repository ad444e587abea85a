#ifndef EDGESHARE_SYMBOLS_H
#define EDGESHARE_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>

#include "driver/nvml_api.h"
#include "driver_api.h"

/* One number for each symbol of symbols.def. */
enum es_symbol {
#define ES_NAME(name) ES_SYMBOL_##name,
#include "driver/symbol_names.h"
    ES_SYMBOLS,
};

/* Symbols from here on are NVML's, those before it the driver's. */
enum { ES_FIRST_OF_NVML = ES_SYMBOL_nvmlDeviceGetMemoryInfo };

/* The driver's (and NVML's) own functions, by es_symbol: NULL where it has none, or is not loaded yet. */
extern void *es_driver[ES_SYMBOLS] __attribute__((visibility("hidden")));

/* The driver's own function of this name. */
#define ES_DRIVER(name) ((__typeof__(&name))es_driver[ES_SYMBOL_##name])

/* NVML's own function of this name. */
#define ES_NVML_LIBRARY(name) ES_DRIVER(name)

/* Exports a wrapper that is called es_<name> here as <name>. */
#define ES_EXPORT(name) extern __typeof__(name) name __attribute__((alias("es_" #name), visibility("default")))

/* What a wrapper answers when there is no driver behind it. */
#define ES_NO_DRIVER CUDA_ERROR_SHARED_OBJECT_INIT_FAILED

/* The first lines of every wrapper. */
#define ES_REAL_OR_RETURN(name)              \
    do {                                     \
        if (!es_driver_find())               \
            return ES_NO_DRIVER;             \
        if (ES_DRIVER(name) == NULL)         \
            return CUDA_ERROR_NOT_SUPPORTED; \
    } while (0)

/* Fills es_driver when the driver is loaded and that was not done since anything was unloaded; true when it is filled. One load
 * once the driver is kept. */
bool es_driver_find(void);

/* Fills NVML's part of es_driver when NVML is loaded; true when it is filled. It is asked for seldom and never kept. */
bool es_nvml_find(void);

/* es_driver_find or es_nvml_find, whichever the symbol is of. */
bool es_library_find(enum es_symbol symbol);

/* A context was made, or a thread of the hook's calls the driver whenever it likes: it stays loaded, however often the program closes
 * it. */
void es_driver_keep(void);

/* True when the address lies within the driver's code. */
bool es_driver_contains(const void *address);

/* A symbol's name. */
const char *es_symbol_name(int symbol);

#endif
