#include "driver/array/array.h"
#include "driver/allocation/allocation.h"
#include "driver/base/driver.h"
#include "driver/base/objects.h"
#include "driver/context/context.h"
#include "driver/memory/memory.h"

#define KNOWN_FLAGS 0xffu
#define NO_MEMORY (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)
static struct object_pool arrays = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct owned_list alone = {.lock = PTHREAD_MUTEX_INITIALIZER}; /* those that are no level of a mipmapped one */

static size_t format_bytes(CUarray_format format) {
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8: return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF: return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT: return 4;
    default: return 0;
    }
}

/* Fills in the sizes: false where there can be no such array. */
static bool measure(struct CUarray_st *array, const CUDA_ARRAY3D_DESCRIPTOR *wanted) {
    const size_t most = (size_t)1 << 20;
    size_t bytes = format_bytes(wanted->Format);
    bool channels = wanted->NumChannels == 1 || wanted->NumChannels == 2 || wanted->NumChannels == 4;
    bool layers = wanted->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
    if (!bytes || !channels || !wanted->Width || wanted->Width > most || wanted->Height > most || wanted->Depth > most ||
        (wanted->Flags & ~KNOWN_FLAGS) || (wanted->Depth && !wanted->Height && !layers) || (layers && !wanted->Depth))
        return false;
    if ((wanted->Flags & CUDA_ARRAY3D_CUBEMAP) && (wanted->Width != wanted->Height || wanted->Depth % 6))
        return false;
    array->description = *wanted;
    array->element = bytes * wanted->NumChannels;
    array->row = wanted->Width * array->element;
    array->rows = wanted->Height ? wanted->Height : 1;
    array->planes = wanted->Depth ? wanted->Depth : 1;
    return true;
}

CUresult array_make(struct CUctx_st *context, const CUDA_ARRAY3D_DESCRIPTOR *wanted, struct CUarray_st **made) {
    struct CUarray_st *array = object_make(&arrays, sizeof *array);
    if (!array)
        return CUDA_ERROR_OUT_OF_MEMORY;
    array->owned = (struct owned){.context = context, .context_id = context->id};
    CUresult result = measure(array, wanted) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && !(wanted->Flags & NO_MEMORY))
        result = allocate(context, array_bytes(array), ALLOCATION_DEVICE, 0, NULL, &array->begin);
    if (result != CUDA_SUCCESS) {
        object_drop(&arrays, array);
        return result;
    }
    array->owned.mark = MARK_ARRAY;
    *made = array;
    return CUDA_SUCCESS;
}

void array_destroy(struct CUarray_st *array) {
    if (array->begin)
        release(array->begin, ALLOCATION_DEVICE);
    object_drop(&arrays, array);
}

static CUresult check(const struct CUarray_st *array) {
    return LIVES(array, MARK_ARRAY) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult check_array(const struct CUarray_st *array) {
    CUresult result = check(array);
    return result == CUDA_SUCCESS && !array->begin ? CUDA_ERROR_INVALID_VALUE : result;
}

CUresult check_array_line(const struct CUarray_st *array, size_t offset, size_t bytes) {
    CUresult result = check_array(array);
    if (result == CUDA_SUCCESS && (offset > array->row || bytes > array->row - offset))
        result = CUDA_ERROR_INVALID_VALUE;
    return result;
}

static CUresult create(CUarray *handle, const CUDA_ARRAY3D_DESCRIPTOR *wanted) {
    CURRENT(context);
    struct CUarray_st *array;
    CUresult result = array_make(context, wanted, &array);
    if (result != CUDA_SUCCESS)
        return result;
    owned_add(&alone, &array->owned);
    *handle = array;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray) {
    CHECK_DRIVER();
    if (!pHandle || !pAllocateArray)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR wanted = {
        .Width = pAllocateArray->Width,
        .Height = pAllocateArray->Height,
        .Format = pAllocateArray->Format,
        .NumChannels = pAllocateArray->NumChannels,
    };
    return create(pHandle, &wanted);
}

EXPORT CUresult cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray) {
    CHECK_DRIVER();
    return pHandle && pAllocateArray ? create(pHandle, pAllocateArray) : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *pArrayDescriptor, CUarray hArray) {
    CURRENT(context);
    (void)context;
    CUresult result = check(hArray);
    if (result != CUDA_SUCCESS || !pArrayDescriptor)
        return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : result;
    *pArrayDescriptor = (CUDA_ARRAY_DESCRIPTOR){hArray->description.Width, hArray->description.Height, hArray->description.Format,
                                                hArray->description.NumChannels};
    return CUDA_SUCCESS;
}

EXPORT CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *pArrayDescriptor, CUarray hArray) {
    CURRENT(context);
    (void)context;
    CUresult result = check(hArray);
    if (result != CUDA_SUCCESS || !pArrayDescriptor)
        return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : result;
    *pArrayDescriptor = hArray->description;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUarray array, CUdevice device) {
    CHECK_DRIVER();
    CUresult result = check(array);
    if (result != CUDA_SUCCESS)
        return result;
    if (!valid_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    /* Only of those whose memory the caller maps. */
    if (!memoryRequirements || !(array->description.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING))
        return CUDA_ERROR_INVALID_VALUE;
    *memoryRequirements =
        (CUDA_ARRAY_MEMORY_REQUIREMENTS){.size = round_up(array_bytes(array), TILE_BYTES), .alignment = TILE_BYTES};
    return CUDA_SUCCESS;
}

EXPORT CUresult cuArrayDestroy(CUarray hArray) {
    CHECK_DRIVER();
    CUresult result = check(hArray);
    if (result != CUDA_SUCCESS || hArray->level)
        return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_HANDLE : result;
    result = owned_remove(&alone, &hArray->owned);
    if (result == CUDA_SUCCESS)
        array_destroy(hArray);
    return result;
}

void arrays_end(struct CUctx_st *context) {
    struct owned *own;
    while ((own = owned_of(&alone, context)))
        array_destroy((struct CUarray_st *)own);
}
