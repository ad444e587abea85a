#include <stdio.h>
#include <string.h>

#include "left_alone.h"
#include "log.h"
#include "settings.h"
#include "symbols.h"
#include "wrappers.h"

/* Doors that the driver itself has. What goes through them unknown is said once. */

/* Whether this was not asked before, for the first few dozen things asked: two threads may both be told so. */
static bool first_time(const void *data, size_t bytes)
{
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

static bool heard(void)
{
    return es_setting_log()[0] != '\0';
}

static void say_unknown(const char *symbol)
{
    if (!heard() || es_left_alone(symbol) || !first_time(symbol, strlen(symbol)))
        return;
    if (es_symbol_named(symbol) >= 0)
        es_log("cuGetProcAddress gave a version of %s that is not known here; it is left alone", symbol);
    else
        es_log("cuGetProcAddress gave %s, which is not known here; it is left alone", symbol);
}

/* The driver is asked first, with the caller's own version and flags; what it returned says which of a name's versions
 * was chosen, and that one's wrapper takes its place. */
static void substitute(const char *symbol, void **function)
{
    void *wrapper;

    if (symbol == NULL || function == NULL || *function == NULL)
        return;
    wrapper = es_wrapper_of(*function);
    if (wrapper != NULL)
        *function = wrapper;
    else
        say_unknown(symbol);
}

CUresult es_cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
    CUresult result;

    ES_REAL_OR_RETURN(cuGetProcAddress);
    result = ES_DRIVER(cuGetProcAddress)(symbol, pfn, cudaVersion, flags);
    if (result == CUDA_SUCCESS)
        substitute(symbol, pfn);
    return result;
}
ES_EXPORT(cuGetProcAddress);

CUresult es_cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                                CUdriverProcAddressQueryResult *symbolStatus)
{
    CUresult result;

    ES_REAL_OR_RETURN(cuGetProcAddress_v2);
    result = ES_DRIVER(cuGetProcAddress_v2)(symbol, pfn, cudaVersion, flags, symbolStatus);
    if (result == CUDA_SUCCESS)
        substitute(symbol, pfn);
    return result;
}
ES_EXPORT(cuGetProcAddress_v2);

/* Tables of functions that NVIDIA keeps to itself. They are passed on as they are. */
CUresult es_cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
    char hex[2 * sizeof(CUuuid) + 1];
    CUresult result;

    ES_REAL_OR_RETURN(cuGetExportTable);
    result = ES_DRIVER(cuGetExportTable)(ppExportTable, pExportTableId);
    if (result == CUDA_SUCCESS && pExportTableId != NULL && heard() &&
        first_time(pExportTableId, sizeof(*pExportTableId))) {
        for (size_t i = 0; i < sizeof(*pExportTableId); i++)
            (void)snprintf(hex + 2 * i, 3, "%02x", (unsigned char)pExportTableId->bytes[i]);
        es_log("the program has the driver's table %s: what it calls in there is not seen", hex);
    }
    return result;
}
ES_EXPORT(cuGetExportTable);
