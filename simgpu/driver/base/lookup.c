/* Finding functions by name and version, as programs since CUDA 11.3 do. */
#include <string.h>

#include "driver/base/driver.h"
#include "driver/base/entries.h"

struct symbol {
    const char *name;
    int version;
    void *function;
    int thread_version; /* 0: no form for per-thread default streams */
    void *thread_function;
};

/* Function pointers in a table of object pointers: POSIX has dlsym do the same. */
#define PLAIN(name, version, symbol) {#name, version, (void *)symbol, 0, NULL},
#define PTSZ(name, version, thread_version, symbol) {#name, version, (void *)symbol, thread_version, (void *)symbol##_ptsz},
#define PTDS(name, version, thread_version, symbol) {#name, version, (void *)symbol, thread_version, (void *)symbol##_ptds},
static const struct symbol SYMBOLS[] = {
#include "driver/base/symbols.def"
};
#undef PLAIN
#undef PTSZ
#undef PTDS

/* Whether any version of it has a form for per-thread default streams: then those alone count for who asks for them. */
static bool has_thread_form(const char *name) {
    bool has = false;
    for (size_t index = 0; index < sizeof SYMBOLS / sizeof *SYMBOLS; index++)
        has |= SYMBOLS[index].thread_version && strcmp(SYMBOLS[index].name, name) == 0;
    return has;
}

/* The newest form of `name` that a program built for `version` knows; NULL: none, and `status` says why. Seen on driver
 * 535: per-thread wins over legacy, and a program older than the per-thread form gets no other instead. */
static void *look_up(const char *name, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *status) {
    bool per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    int newest = driver_cuda_version();
    int found_version = 0;
    void *found = NULL;
    bool threads = per_thread && has_thread_form(name);
    *status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    for (size_t index = 0; index < sizeof SYMBOLS / sizeof *SYMBOLS; index++) {
        const struct symbol *symbol = &SYMBOLS[index];
        if (strcmp(symbol->name, name) != 0 || symbol->version > newest)
            continue;
        int since = threads ? symbol->thread_version : symbol->version;
        if (!found)
            *status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        if (threads && !symbol->thread_version)
            continue;
        /* As an unsigned number: a version below zero is the newest. */
        if ((unsigned int)since > (unsigned int)version || symbol->version < found_version)
            continue;
        found = threads ? symbol->thread_function : symbol->function;
        found_version = symbol->version;
        *status = CU_GET_PROC_ADDRESS_SUCCESS;
    }
    return found;
}

#define KNOWN_FLAGS (CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)

EXPORT CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags) {
    CUdriverProcAddressQueryResult status;
    if (!symbol || !pfn || (flags & ~(cuuint64_t)KNOWN_FLAGS))
        return CUDA_ERROR_INVALID_VALUE;
    void *found = look_up(symbol, cudaVersion, flags, &status);
    if (!found)
        return CUDA_ERROR_NOT_FOUND;
    *pfn = found;
    return CUDA_SUCCESS;
}

/* This form succeeds when there is nothing to be found, and says so in `symbolStatus`. */
EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *symbolStatus) {
    CUdriverProcAddressQueryResult status;
    if (!symbol || !pfn || (flags & ~(cuuint64_t)KNOWN_FLAGS))
        return CUDA_ERROR_INVALID_VALUE;
    *pfn = look_up(symbol, cudaVersion, flags, &status);
    if (symbolStatus)
        *symbolStatus = status;
    return CUDA_SUCCESS;
}

/* No table of the undocumented kind is here: callers that need one say so. */
EXPORT CUresult cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId) {
    if (!ppExportTable || !pExportTableId)
        return CUDA_ERROR_INVALID_VALUE;
    *ppExportTable = NULL;
    return CUDA_ERROR_NOT_FOUND;
}
