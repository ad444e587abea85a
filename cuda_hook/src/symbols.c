#include "symbols.h"

#include "objects.h"
#include "text.h"
#include "wrappers.h"

void *es_driver[ES_SYMBOLS];

static struct es_object driver_object;
static bool found;
static bool nvml_found;

enum { FIRST_OF_NVML = ES_SYMBOL_nvmlDeviceGetMemoryInfo };

/* All names in one string, so that the table needs no relocations. */
static const char names[] =
#define ES_PTSZ(kind, name, parameters, arguments, key, stream) #name "\0" #name "_ptsz\0"
#define ES_PTDS(kind, name, parameters, arguments, key) #name "\0" #name "_ptds\0"
#define ES_ONE(kind, name, parameters, arguments, key, stream) #name "\0"
#define ES_OWN(name) #name "\0"
#define ES_USED(name) #name "\0"
#define ES_NVML(name) #name "\0"
#define ES_NVML_USED(name) #name "\0"
#include "symbols.def"
#undef ES_PTSZ
#undef ES_PTDS
#undef ES_ONE
#undef ES_OWN
#undef ES_USED
#undef ES_NVML
#undef ES_NVML_USED
    "";

/* An address that the compiler does not see through. */
static inline void *computed(void *address)
{
    __asm__("" : "+r"(address));
    return address;
}

/* A switch and no table, again for the relocations: these addresses are computed (clang would make a table of it). */
void *es_wrapper(enum es_symbol symbol)
{
    switch (symbol) {
#define ES_CASE(name)      \
    case ES_SYMBOL_##name: \
        return computed((void *)es_##name);
#define ES_PTSZ(kind, name, parameters, arguments, key, stream) ES_CASE(name) ES_CASE(name##_ptsz)
#define ES_PTDS(kind, name, parameters, arguments, key) ES_CASE(name) ES_CASE(name##_ptds)
#define ES_ONE(kind, name, parameters, arguments, key, stream) ES_CASE(name)
#define ES_OWN(name) ES_CASE(name)
#define ES_USED(name)
#define ES_NVML(name) ES_CASE(name)
#define ES_NVML_USED(name)
#include "symbols.def"
#undef ES_PTSZ
#undef ES_PTDS
#undef ES_ONE
#undef ES_OWN
#undef ES_USED
#undef ES_NVML
#undef ES_NVML_USED
#undef ES_CASE
    default:
        return NULL;
    }
}

/* The symbols from `first` up to `end` from the object whose file is called so. */
static bool fill(const char *file, struct es_object *object, int first, int end)
{
    const char *name = names;

    if (!es_object_named(file, object))
        return false;
    for (int symbol = 0; symbol < end; symbol++) {
        if (symbol >= first)
            es_driver[symbol] = es_object_symbol(object, name);
        name = es_text_next(name);
    }
    return true;
}

bool es_driver_find_again(void)
{
    if (!fill("libcuda.so", &driver_object, 0, FIRST_OF_NVML))
        return false;
    __atomic_store_n(&found, true, __ATOMIC_RELEASE);
    return true;
}

bool es_driver_find(void)
{
    return __atomic_load_n(&found, __ATOMIC_ACQUIRE) || es_driver_find_again();
}

bool es_nvml_find(void)
{
    struct es_object object;

    if (!__atomic_load_n(&nvml_found, __ATOMIC_ACQUIRE)) {
        if (!fill("libnvidia-ml.so", &object, FIRST_OF_NVML, ES_SYMBOLS))
            return false;
        __atomic_store_n(&nvml_found, true, __ATOMIC_RELEASE);
    }
    return true;
}

bool es_library_find(enum es_symbol symbol)
{
    return (int)symbol < FIRST_OF_NVML ? es_driver_find() : es_nvml_find();
}

bool es_driver_contains(const void *address)
{
    return __atomic_load_n(&found, __ATOMIC_ACQUIRE) && es_object_contains(&driver_object, address);
}

int es_symbol_named(const char *wanted)
{
    const char *name = names;

    for (int symbol = 0; symbol < ES_SYMBOLS; symbol++) {
        if (es_text_same(name, wanted))
            return es_wrapper((enum es_symbol)symbol) != NULL ? symbol : -1;
        name = es_text_next(name);
    }
    return -1;
}

void *es_wrapper_of(const void *function)
{
    for (int symbol = 0; function != NULL && symbol < ES_SYMBOLS; symbol++) {
        void *wrapper = es_wrapper((enum es_symbol)symbol);

        if (es_driver[symbol] == function || wrapper == function)
            return wrapper;
    }
    return NULL;
}
