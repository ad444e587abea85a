#include "entry/substitutes.h"

#include <stdio.h>
#include <string.h>

#include "api/wrappers.h"
#include "base/log.h"
#include "base/settings.h"
#include "base/text.h"
#include "entry/left_alone.h"

/* An address that the compiler does not see through. */
static inline void *computed(void *address) {
    __asm__("" : "+r"(address));
    return address;
}

/* A switch and no table, again for the relocations: these addresses are computed (clang would make a table of it). */
void *es_wrapper(enum es_symbol symbol) {
    switch (symbol) {
#define ES_NAME(name) \
    case ES_SYMBOL_##name: return computed((void *)es_##name);
#define ES_UNWRAPPED(name)
#include "driver/symbol_names.h"
    default: return NULL;
    }
}

int es_symbol_named(const char *wanted) {
    for (int symbol = 0; symbol < ES_SYMBOLS; symbol++) {
        if (es_text_same(es_symbol_name(symbol), wanted))
            return es_wrapper((enum es_symbol)symbol) != NULL ? symbol : -1;
    }
    return -1;
}

void *es_wrapper_of(enum es_symbol like, const void *function) {
    const int first = (int)like < ES_FIRST_OF_NVML ? 0 : ES_FIRST_OF_NVML;
    const int end = (int)like < ES_FIRST_OF_NVML ? ES_FIRST_OF_NVML : ES_SYMBOLS;

    for (int symbol = first; function != NULL && symbol < end; symbol++) {
        if (es_driver[symbol] == function)
            return es_wrapper((enum es_symbol)symbol);
    }
    for (int symbol = first; function != NULL && symbol < end; symbol++) {
        if (es_wrapper((enum es_symbol)symbol) == function)
            return (void *)function;
    }
    return NULL;
}

/* Doors that the driver itself has. What goes through them unknown is said once. */

/* Whether this was not asked before, for the first few dozen things asked: two threads may both be told so. */
static bool first_time(const void *data, size_t bytes) {
    static uint64_t seen[64];
    uint64_t hash = UINT64_C(0xCBF29CE484222325); /* FNV-1a */

    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * UINT64_C(0x100000001B3);
    for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++) {
        const uint64_t known = __atomic_load_n(&seen[i], __ATOMIC_RELAXED);

        if (known == hash)
            return false;
        if (known == 0) {
            __atomic_store_n(&seen[i], hash, __ATOMIC_RELAXED);
            return true;
        }
    }
    return false;
}

static bool heard(void) { return es_setting_log()[0] != '\0'; }

static void say_unknown(const char *symbol) {
    if (!heard() || es_left_alone(symbol) || !first_time(symbol, strlen(symbol)))
        return;
    if (es_symbol_named(symbol) >= 0)
        es_log("cuGetProcAddress gave a version of %s that is not known here; it is left alone", symbol);
    else
        es_log("cuGetProcAddress gave %s, which is not known here; it is left alone", symbol);
}

/* The driver is asked first, with the caller's own version and flags; what it returned says which of a name's versions
 * was chosen, and that one's wrapper takes its place. */
static void substitute_found(const char *symbol, void **function) {
    void *wrapper;

    if (symbol == NULL || function == NULL || *function == NULL)
        return;
    wrapper = es_wrapper_of(ES_SYMBOL_cuGetProcAddress, *function);
    if (wrapper != NULL)
        *function = wrapper;
    else
        say_unknown(symbol);
}

CUresult es_cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags) {
    CUresult result;

    ES_REAL_OR_RETURN(cuGetProcAddress);
    result = ES_DRIVER(cuGetProcAddress)(symbol, pfn, cudaVersion, flags);
    if (result == CUDA_SUCCESS)
        substitute_found(symbol, pfn);
    return result;
}
ES_EXPORT(cuGetProcAddress);

CUresult es_cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                                CUdriverProcAddressQueryResult *symbolStatus) {
    CUresult result;

    ES_REAL_OR_RETURN(cuGetProcAddress_v2);
    result = ES_DRIVER(cuGetProcAddress_v2)(symbol, pfn, cudaVersion, flags, symbolStatus);
    if (result == CUDA_SUCCESS)
        substitute_found(symbol, pfn);
    return result;
}
ES_EXPORT(cuGetProcAddress_v2);

/* Tables of functions that NVIDIA keeps to itself are passed on as they are. These are the ones that its runtimes of CUDA
 * 11.7 to 13.5 have the ids of; what they submit goes through the functions that have names. */
static const unsigned char runtimes[][sizeof(CUuuid)] = {
    {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9},
    {0xa0, 0x94, 0x79, 0x8c, 0x2e, 0x74, 0x2e, 0x74, 0x93, 0xf2, 0x08, 0x00, 0x20, 0x0c, 0x0a, 0x66},
    {0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47, 0x82, 0x98, 0xf6, 0xe7, 0x8a, 0x3a, 0xec, 0xdc},
    {0xc6, 0x93, 0x33, 0x6e, 0x11, 0x21, 0xdf, 0x11, 0xa8, 0xc3, 0x68, 0xf3, 0x55, 0xd8, 0x95, 0x93},
    {0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b, 0x8d, 0x34, 0xba, 0x12, 0x3c, 0x66, 0xe1, 0xf2},
    {0x26, 0x3e, 0x88, 0x60, 0x7c, 0xd2, 0x61, 0x43, 0x92, 0xf6, 0xbb, 0xd5, 0x00, 0x6d, 0xfa, 0x7e},
    {0xf8, 0xcf, 0xf9, 0x51, 0x21, 0x46, 0x8b, 0x4e, 0xb9, 0xe2, 0xfb, 0x46, 0x9e, 0x7c, 0x0d, 0xd9},
};

static void say_table(const CUuuid *id) {
    char hex[2 * sizeof(*id) + 1];

    for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++) {
        if (memcmp(id, runtimes[i], sizeof(*id)) == 0)
            return;
    }
    if (!heard() || !first_time(id, sizeof(*id)))
        return;
    for (size_t i = 0; i < sizeof(*id); i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", (unsigned char)id->bytes[i]);
    es_log("the program has the driver's table %s: what it calls in there is not seen", hex);
}

CUresult es_cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId) {
    CUresult result;

    ES_REAL_OR_RETURN(cuGetExportTable);
    result = ES_DRIVER(cuGetExportTable)(ppExportTable, pExportTableId);
    if (result == CUDA_SUCCESS && pExportTableId != NULL)
        say_table(pExportTableId);
    return result;
}
ES_EXPORT(cuGetExportTable);
