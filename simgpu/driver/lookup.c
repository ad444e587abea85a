/* Finding functions by name and version, as programs since CUDA 11.3 do. */
#include <string.h>

#include "driver/driver.h"

struct symbol {
    const char *name;
    int version;
    void *function;
    int thread_version; /* 0: no form for per-thread default streams */
    void *thread_function;
};

/* Function pointers in a table of object pointers: POSIX has dlsym do the same. */
#define PLAIN(name, version, symbol) {#name, version, (void *)symbol, 0, NULL},
#define PTSZ(name, version, thread_version, symbol) \
    {#name, version, (void *)symbol, thread_version, (void *)symbol##_ptsz},
#define PTDS(name, version, thread_version, symbol) \
    {#name, version, (void *)symbol, thread_version, (void *)symbol##_ptds},
static const struct symbol SYMBOLS[] = {
#include "driver/symbols.def"
};
#undef PLAIN
#undef PTSZ
#undef PTDS

static CUresult look_up(const char *name, void **function, int version, cuuint64_t flags, bool per_thread,
                        CUdriverProcAddressQueryResult *status) {
    const cuuint64_t known = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    if (!name || !function || (flags & ~known) || flags == known)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags)
        per_thread = flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    const struct symbol *best = NULL;
    bool named = false;
    for (size_t index = 0; index < sizeof SYMBOLS / sizeof *SYMBOLS; index++) {
        const struct symbol *symbol = &SYMBOLS[index];
        if (strcmp(symbol->name, name) != 0)
            continue;
        named = true;
        if (symbol->version <= version && (!best || symbol->version > best->version))
            best = symbol;
    }
    *function = NULL;
    if (best)
        *function = per_thread && best->thread_version && best->thread_version <= version ? best->thread_function
                                                                                          : best->function;
    if (status)
        *status = best    ? CU_GET_PROC_ADDRESS_SUCCESS
                  : named ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                          : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return best ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

EXPORT CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags) {
    return look_up(symbol, pfn, cudaVersion, flags, false, NULL);
}

EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *symbolStatus) {
    return look_up(symbol, pfn, cudaVersion, flags, false, symbolStatus);
}

/* No table of the undocumented kind is here: callers that need one say so. */
EXPORT CUresult cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId) {
    if (!ppExportTable || !pExportTableId)
        return CUDA_ERROR_INVALID_VALUE;
    *ppExportTable = NULL;
    return CUDA_ERROR_NOT_FOUND;
}
