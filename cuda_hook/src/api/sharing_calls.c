#include "api/wrappers.h"
#include "driver/symbols.h"
#include "memory/account.h"
#include "memory/claims.h"

/* Memory that others made. What CUDA exports (by cuMemExportToShareableHandle, pools, cuIpcGetMemHandle) is counted where
 * it was made, and not again where it is imported. External memory was made by something that no hook sees (a graphics
 * library): it is counted where it is imported. */

CUresult es_cuImportExternalMemory(CUexternalMemory *extMem_out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *memHandleDesc) {
    struct es_claim claim = {.bytes = 0};
    CUcontext context = NULL;
    CUresult result;

    ES_REAL_OR_RETURN(cuImportExternalMemory);
    if (extMem_out != NULL && memHandleDesc != NULL && !es_claim_take_here(&claim, &context, memHandleDesc->size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = ES_DRIVER(cuImportExternalMemory)(extMem_out, memHandleDesc);
    if (result == CUDA_SUCCESS)
        es_account_keep(&claim, ES_BLOCK_EXTERNAL, (uint64_t)(uintptr_t)*extMem_out, context);
    else
        es_account_drop(&claim);
    return result;
}
ES_EXPORT(cuImportExternalMemory);

CUresult es_cuDestroyExternalMemory(CUexternalMemory extMem) {
    struct es_block block;
    CUresult result;

    ES_REAL_OR_RETURN(cuDestroyExternalMemory);
    block = es_account_take_out(ES_BLOCK_EXTERNAL, (uint64_t)(uintptr_t)extMem);
    result = ES_DRIVER(cuDestroyExternalMemory)(extMem);
    es_account_settle(ES_BLOCK_EXTERNAL, block, result == CUDA_SUCCESS);
    return result;
}
ES_EXPORT(cuDestroyExternalMemory);
