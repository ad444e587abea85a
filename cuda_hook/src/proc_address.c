#include "log.h"
#include "symbols.h"
#include "wrappers.h"

/* The driver is asked first, with the caller's own version and flags; what it returned says which of a name's versions
 * was chosen, and that one's wrapper takes its place. */
static void substitute(const char *symbol, void **function)
{
    void *wrapper;

    if (function == NULL || *function == NULL)
        return;
    wrapper = es_wrapper_of(*function);
    if (wrapper != NULL)
        *function = wrapper;
    else if (symbol != NULL && es_symbol_named(symbol) >= 0)
        es_log("cuGetProcAddress gave a version of %s that is not known here; it is left alone", symbol);
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
