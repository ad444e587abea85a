#include "driver/symbols.h"

#include <stddef.h>
#include <stdint.h>

#include "loader/exports.h"
#include "loader/objects.h"

void *es_driver[ES_SYMBOLS];

static struct es_object driver_object;
static bool found;
static bool nvml_found;

enum { FIRST_OF_NVML = ES_SYMBOL_nvmlDeviceGetMemoryInfo };

/* The names as data of their own, found by offsets: pointers would be relocated in every process that loads the hook. */
static const struct names {
#define ES_NAME(name) char name[sizeof(#name)];
#include "driver/symbol_names.h"
} names = {
#define ES_NAME(name) #name,
#include "driver/symbol_names.h"
};

static const uint16_t name_at[ES_SYMBOLS] = {
#define ES_NAME(name) offsetof(struct names, name),
#include "driver/symbol_names.h"
};

_Static_assert(sizeof(names) <= UINT16_MAX, "name_at has 16 bits");

const char *es_symbol_name(int symbol) { return (const char *)&names + name_at[symbol]; }

/* The symbols from `first` up to `end` from the object whose file is called so. */
static bool fill(const char *file, struct es_object *object, int first, int end) {
    if (!es_object_named(file, object))
        return false;
    for (int symbol = first; symbol < end; symbol++)
        es_driver[symbol] = es_object_symbol(object, es_symbol_name(symbol));
    return true;
}

bool es_driver_find_again(void) {
    if (!fill("libcuda.so", &driver_object, 0, FIRST_OF_NVML))
        return false;
    __atomic_store_n(&found, true, __ATOMIC_RELEASE);
    return true;
}

bool es_driver_find(void) { return __atomic_load_n(&found, __ATOMIC_ACQUIRE) || es_driver_find_again(); }

bool es_nvml_find(void) {
    struct es_object object;

    if (!__atomic_load_n(&nvml_found, __ATOMIC_ACQUIRE)) {
        if (!fill("libnvidia-ml.so", &object, FIRST_OF_NVML, ES_SYMBOLS))
            return false;
        __atomic_store_n(&nvml_found, true, __ATOMIC_RELEASE);
    }
    return true;
}

bool es_library_find(enum es_symbol symbol) { return (int)symbol < FIRST_OF_NVML ? es_driver_find() : es_nvml_find(); }

bool es_driver_contains(const void *address) {
    return __atomic_load_n(&found, __ATOMIC_ACQUIRE) && es_object_contains(&driver_object, address);
}
