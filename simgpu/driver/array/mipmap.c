/* Mipmapped arrays: each level is an array of half the sides. */
#include "driver/array/array.h"
#include "driver/base/driver.h"
#include "driver/base/objects.h"
#include "driver/context/context.h"

enum { LEVELS = 32 };

struct CUmipmappedArray_st {
    struct owned owned;
    unsigned int levels;
    struct CUarray_st *level[LEVELS];
};

static struct object_pool mipmaps = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct owned_list made = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void destroy_mipmap(struct CUmipmappedArray_st *mipmap) {
    for (unsigned int level = 0; level < mipmap->levels; level++)
        array_destroy(mipmap->level[level]);
    object_drop(&mipmaps, mipmap);
}

static size_t half(size_t side) { return side > 1 ? side / 2 : side; }

static unsigned int most_levels(const CUDA_ARRAY3D_DESCRIPTOR *wanted) {
    size_t side = wanted->Width > wanted->Height ? wanted->Width : wanted->Height;
    bool layers = wanted->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
    unsigned int levels = 1;
    if (!layers && wanted->Depth > side)
        side = wanted->Depth;
    for (; side > 1; side /= 2)
        levels++;
    return levels;
}

EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
                                       unsigned int numMipmapLevels) {
    CURRENT(context);
    if (!pHandle || !pMipmappedArrayDesc || !numMipmapLevels)
        return CUDA_ERROR_INVALID_VALUE;
    struct CUmipmappedArray_st *mipmap = object_make(&mipmaps, sizeof *mipmap);
    if (!mipmap)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUDA_ARRAY3D_DESCRIPTOR wanted = *pMipmappedArrayDesc;
    unsigned int most = most_levels(&wanted), levels = numMipmapLevels < most ? numMipmapLevels : most;
    CUresult result = CUDA_SUCCESS;
    mipmap->owned = (struct owned){.context = context, .context_id = context->id};
    while (result == CUDA_SUCCESS && mipmap->levels < levels) {
        result = array_make(context, &wanted, &mipmap->level[mipmap->levels]);
        if (result != CUDA_SUCCESS)
            break;
        mipmap->level[mipmap->levels++]->level = true;
        wanted.Width = half(wanted.Width);
        wanted.Height = half(wanted.Height);
        if (!(wanted.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)))
            wanted.Depth = half(wanted.Depth);
    }
    if (result != CUDA_SUCCESS) {
        destroy_mipmap(mipmap);
        return result;
    }
    mipmap->owned.mark = MARK_MIPMAP;
    owned_add(&made, &mipmap->owned);
    *pHandle = mipmap;
    return CUDA_SUCCESS;
}

#define MIPMAP(handle)                        \
    do {                                      \
        CHECK_DRIVER();                       \
        if (!LIVES(handle, MARK_MIPMAP))      \
            return CUDA_ERROR_INVALID_HANDLE; \
    } while (0)

EXPORT CUresult cuMipmappedArrayGetLevel(CUarray *pLevelArray, CUmipmappedArray hMipmappedArray, unsigned int level) {
    MIPMAP(hMipmappedArray);
    if (!pLevelArray || level >= hMipmappedArray->levels)
        return CUDA_ERROR_INVALID_VALUE;
    *pLevelArray = hMipmappedArray->level[level];
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUmipmappedArray mipmap,
                                                      CUdevice device) {
    MIPMAP(mipmap);
    if (!valid_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!memoryRequirements || !(mipmap->level[0]->description.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING))
        return CUDA_ERROR_INVALID_VALUE;
    size_t size = 0;
    for (unsigned int level = 0; level < mipmap->levels; level++)
        size += array_bytes(mipmap->level[level]);
    *memoryRequirements = (CUDA_ARRAY_MEMORY_REQUIREMENTS){.size = round_up(size, TILE_BYTES), .alignment = TILE_BYTES};
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray) {
    MIPMAP(hMipmappedArray);
    CUresult result = owned_remove(&made, &hMipmappedArray->owned);
    if (result == CUDA_SUCCESS)
        destroy_mipmap(hMipmappedArray);
    return result;
}

void mipmaps_end(struct CUctx_st *context) {
    struct owned *own;
    while ((own = owned_of(&made, context)))
        destroy_mipmap((struct CUmipmappedArray_st *)own);
}
