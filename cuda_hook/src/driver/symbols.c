#include "driver/symbols.h"

#include <stddef.h>
#include <stdint.h>

#include "loader/exports.h"
#include "loader/objects.h"

void *es_driver[ES_SYMBOLS];

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

/* What is in es_driver from `first` up to `end`, and where it was found. */
struct library {
    char file[16]; /* its name begins so */
    int first, end;
    struct es_object object;
    uint64_t unloaded; /* atomic: es_objects_unloaded as it was found, + 1; 0: it is not */
};

static struct library driver = {.file = "libcuda.so", .end = ES_FIRST_OF_NVML};
static struct library nvml = {.file = "libnvidia-ml.so", .first = ES_FIRST_OF_NVML, .end = ES_SYMBOLS};

static bool kept; /* atomic: what was found of the driver holds, whatever is unloaded */

/* Once the program has closed it, a library may be loaded again at another place, or another one at this. */
static bool find(struct library *library) {
    const uint64_t unloaded = es_objects_unloaded() + 1;
    struct es_object object;

    if (__atomic_load_n(&library->unloaded, __ATOMIC_ACQUIRE) == unloaded)
        return true;
    if (!es_object_named(library->file, &object))
        return false;
    library->object = object;
    for (int symbol = library->first; symbol < library->end; symbol++)
        es_driver[symbol] = es_object_symbol(&object, es_symbol_name(symbol));
    __atomic_store_n(&library->unloaded, unloaded, __ATOMIC_RELEASE);
    return true;
}

bool es_driver_find(void) { return __atomic_load_n(&kept, __ATOMIC_ACQUIRE) || find(&driver); }

bool es_nvml_find(void) { return find(&nvml); }

bool es_library_find(enum es_symbol symbol) { return (int)symbol < ES_FIRST_OF_NVML ? es_driver_find() : es_nvml_find(); }

void es_driver_keep(void) {
    if (!__atomic_load_n(&kept, __ATOMIC_ACQUIRE) && es_object_keep(driver.file))
        __atomic_store_n(&kept, find(&driver), __ATOMIC_RELEASE);
}

bool es_driver_contains(const void *address) {
    return __atomic_load_n(&driver.unloaded, __ATOMIC_ACQUIRE) != 0 && es_object_contains(&driver.object, address);
}
