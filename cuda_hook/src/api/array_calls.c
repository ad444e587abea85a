#include "api/wrappers.h"
#include "driver/contexts.h"
#include "driver/symbols.h"
#include "memory/account.h"
#include "memory/amounts.h"
#include "memory/claims.h"
#include "memory/devices.h"

/* Arrays: plain, of three dimensions, mipmapped. How much one takes only the driver knows, and says it (CUDA 11.6) of
 * arrays whose memory is mapped later: such a one, which takes nothing, is made for the question. Of a driver that has
 * none the elements are counted, and what it takes besides shows as overhead. */

/* Bits of an element in each channel. Formats of blocks and of planes have numbers from 0x91 on (CUarray_format); those
 * take no more than a byte a channel, and what they take less the driver's figure corrects. */
static uint64_t bits_of(CUarray_format format) {
    switch ((int)format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8: return 8;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF: return 16;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT: return 32;
    default: return 8;
    }
}

/* A dimension that is not there is 0. Layers and cube faces are the depth. Arrays that have no memory of their own
 * (sparse ones, and those that are mapped later) take none. UINT64_MAX where it is more than the type holds. */
static uint64_t bytes_of(const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned int levels) {
    const bool layered = (array->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
    uint64_t width = array->Width, height = array->Height != 0 ? array->Height : 1;
    uint64_t depth = array->Depth != 0 ? array->Depth : 1;
    uint64_t sum = 0;

    if ((array->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) != 0)
        return 0;
    for (unsigned int level = 0; level < levels && level < 32; level++) {
        uint64_t bytes;

        if (__builtin_mul_overflow(width, height, &bytes) || __builtin_mul_overflow(bytes, depth, &bytes) ||
            __builtin_mul_overflow(bytes, array->NumChannels * bits_of(array->Format) / 8, &bytes) ||
            __builtin_add_overflow(sum, bytes, &sum))
            return UINT64_MAX;
        width = width > 1 ? width / 2 : 1;
        height = height > 1 ? height / 2 : 1;
        depth = depth > 1 && !layered ? depth / 2 : depth;
    }
    return sum;
}

/* What the driver says; 0 when it does not. `levels` is 0 for an array that is not mipmapped. */
static uint64_t ask_driver(const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned int levels, CUdevice device) {
    CUDA_ARRAY3D_DESCRIPTOR later = *array;
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs = {.size = 0};
    CUmipmappedArray mipmap;
    CUarray plain;

    later.Flags |= CUDA_ARRAY3D_DEFERRED_MAPPING;
    if (levels == 0) {
        if (ES_DRIVER(cuArrayGetMemoryRequirements) == NULL || ES_DRIVER(cuArray3DCreate_v2) == NULL ||
            ES_DRIVER(cuArray3DCreate_v2)(&plain, &later) != CUDA_SUCCESS)
            return 0;
        if (ES_DRIVER(cuArrayGetMemoryRequirements)(&needs, plain, device) != CUDA_SUCCESS)
            needs.size = 0;
        (void)ES_DRIVER(cuArrayDestroy)(plain);
        return needs.size;
    }
    if (ES_DRIVER(cuMipmappedArrayGetMemoryRequirements) == NULL ||
        ES_DRIVER(cuMipmappedArrayCreate)(&mipmap, &later, levels) != CUDA_SUCCESS)
        return 0;
    if (ES_DRIVER(cuMipmappedArrayGetMemoryRequirements)(&needs, mipmap, device) != CUDA_SUCCESS)
        needs.size = 0;
    (void)ES_DRIVER(cuMipmappedArrayDestroy)(mipmap);
    return needs.size;
}

/* Claims what an array will take; false when it would pass the cap. */
static bool claim_array(struct es_claim *claim, CUcontext *context, const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned int levels) {
    uint64_t bytes = bytes_of(array, levels != 0 ? levels : 1);
    struct es_quiet quiet;
    uint64_t said;
    CUdevice device;

    *claim = (struct es_claim){.counted = false};
    if (bytes == 0 || !es_amounts_counts() || !es_device_current(&device))
        return true;
    quiet = es_quiet_begin();
    said = ask_driver(array, levels, device);
    es_quiet_end(quiet);
    return es_claim_take_here(claim, context, said != 0 ? said : bytes);
}

#define CREATE(name, type, widened)                                                          \
    CUresult es_##name(CUarray *pHandle, const type *pAllocateArray) {                       \
        struct es_claim claim = {.counted = false};                                          \
        CUcontext context = NULL;                                                            \
        CUresult result;                                                                     \
                                                                                             \
        ES_REAL_OR_RETURN(name);                                                             \
        if (pHandle != NULL && pAllocateArray != NULL) {                                     \
            const CUDA_ARRAY3D_DESCRIPTOR array = widened;                                   \
                                                                                             \
            if (!claim_array(&claim, &context, &array, 0))                                   \
                return CUDA_ERROR_OUT_OF_MEMORY;                                             \
        }                                                                                    \
        result = ES_DRIVER(name)(pHandle, pAllocateArray);                                   \
        if (result == CUDA_SUCCESS)                                                          \
            es_account_keep(&claim, ES_BLOCK_ARRAY, (uint64_t)(uintptr_t)*pHandle, context); \
        else                                                                                 \
            es_account_drop(&claim);                                                         \
        return result;                                                                       \
    }                                                                                        \
    ES_EXPORT(name)

#define FLAT {pAllocateArray->Width, pAllocateArray->Height, 0, pAllocateArray->Format, pAllocateArray->NumChannels, 0}
#define SOLID                                                                    \
    {pAllocateArray->Width,  pAllocateArray->Height,      pAllocateArray->Depth, \
     pAllocateArray->Format, pAllocateArray->NumChannels, pAllocateArray->Flags}

CREATE(cuArrayCreate_v2, CUDA_ARRAY_DESCRIPTOR, FLAT);
CREATE(cuArrayCreate, CUDA_ARRAY_DESCRIPTOR_v1, FLAT);
CREATE(cuArray3DCreate_v2, CUDA_ARRAY3D_DESCRIPTOR, SOLID);
CREATE(cuArray3DCreate, CUDA_ARRAY3D_DESCRIPTOR_v1, SOLID);

CUresult es_cuArrayDestroy(CUarray hArray) {
    struct es_block block;
    CUresult result;

    ES_REAL_OR_RETURN(cuArrayDestroy);
    block = es_account_take_out(ES_BLOCK_ARRAY, (uint64_t)(uintptr_t)hArray);
    result = ES_DRIVER(cuArrayDestroy)(hArray);
    es_account_settle(ES_BLOCK_ARRAY, block, result == CUDA_SUCCESS);
    return result;
}
ES_EXPORT(cuArrayDestroy);

CUresult es_cuMipmappedArrayCreate(CUmipmappedArray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
                                   unsigned int numMipmapLevels) {
    struct es_claim claim = {.counted = false};
    CUcontext context = NULL;
    CUresult result;

    ES_REAL_OR_RETURN(cuMipmappedArrayCreate);
    if (pHandle != NULL && pMipmappedArrayDesc != NULL && numMipmapLevels != 0 &&
        !claim_array(&claim, &context, pMipmappedArrayDesc, numMipmapLevels))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = ES_DRIVER(cuMipmappedArrayCreate)(pHandle, pMipmappedArrayDesc, numMipmapLevels);
    if (result == CUDA_SUCCESS)
        es_account_keep(&claim, ES_BLOCK_MIPMAP, (uint64_t)(uintptr_t)*pHandle, context);
    else
        es_account_drop(&claim);
    return result;
}
ES_EXPORT(cuMipmappedArrayCreate);

CUresult es_cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray) {
    struct es_block block;
    CUresult result;

    ES_REAL_OR_RETURN(cuMipmappedArrayDestroy);
    block = es_account_take_out(ES_BLOCK_MIPMAP, (uint64_t)(uintptr_t)hMipmappedArray);
    result = ES_DRIVER(cuMipmappedArrayDestroy)(hMipmappedArray);
    es_account_settle(ES_BLOCK_MIPMAP, block, result == CUDA_SUCCESS);
    return result;
}
ES_EXPORT(cuMipmappedArrayDestroy);
