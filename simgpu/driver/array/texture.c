/* Texture and surface objects. No kernel reads them here: they hold what they were made of, and are told from stale ones. */
#include "driver/allocation/allocation.h"
#include "driver/array/array.h"
#include "driver/base/driver.h"
#include "driver/base/entries.h"
#include "driver/base/objects.h"
#include "driver/context/context.h"

enum resource_type { RESOURCE_ARRAY, RESOURCE_MIPMAPPED_ARRAY, RESOURCE_LINEAR, RESOURCE_PITCH2D };

/* CUDA_RESOURCE_DESC, CUDA_TEXTURE_DESC and CUDA_RESOURCE_VIEW_DESC: what is looked at here, and room for the rest. */
struct resource {
    uint32_t type;
    union {
        CUarray array;
        CUdeviceptr address;
        int reserved[32];
    } of;
    unsigned int flags;
};
struct sampling {
    int modes[4]; /* of addresses in three dimensions, and of the filter */
    unsigned int rest[22];
};
struct view {
    uint32_t format;
    size_t extent[3];
    unsigned int rest[20];
};
_Static_assert(sizeof(struct resource) == 144 && sizeof(struct sampling) == 104 && sizeof(struct view) == 112,
               "sizes of cuda.h, the same from CUDA 5 to 13");

struct texture {
    enum mark mark;
    struct resource resource;
    struct sampling sampling;
    struct view view;
    bool viewed;
};

static struct object_pool pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static CUresult make(unsigned long long *made, enum mark mark, const struct resource *resource, const struct sampling *sampling,
                     const struct view *view) {
    CURRENT(context);
    (void)context;
    if (!made || !resource || resource->type > RESOURCE_PITCH2D || resource->flags)
        return CUDA_ERROR_INVALID_VALUE;
    bool in_memory = resource->type == RESOURCE_LINEAR || resource->type == RESOURCE_PITCH2D;
    /* A view is one of an array; a surface is an array. */
    if (in_memory && (view || mark == MARK_SURFACE))
        return CUDA_ERROR_INVALID_VALUE;
    struct allocation allocation;
    if (in_memory ? !find_allocation(resource->of.address, &allocation) : !resource->of.array)
        return CUDA_ERROR_INVALID_VALUE;
    struct texture *texture = object_make(&pool, sizeof *texture);
    if (!texture)
        return CUDA_ERROR_OUT_OF_MEMORY;
    texture->mark = mark;
    texture->resource = *resource;
    if (sampling)
        texture->sampling = *sampling;
    if (view)
        texture->view = *view;
    texture->viewed = view != NULL;
    *made = (unsigned long long)(uintptr_t)texture;
    return CUDA_SUCCESS;
}

/* The object behind a handle, or NULL. */
static struct texture *find(unsigned long long handle, enum mark mark, const char *call) {
    struct texture *texture = (struct texture *)(uintptr_t)handle;
    return is_live(texture, mark, call) ? texture : NULL;
}

static CUresult destroy(unsigned long long handle, enum mark mark) {
    CURRENT(context);
    (void)context;
    struct texture *texture = find(handle, mark, __func__);
    if (!texture)
        return CUDA_ERROR_INVALID_VALUE;
    object_drop(&pool, texture);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuTexObjectCreate(unsigned long long *pTexObject, const struct resource *pResDesc,
                                  const struct sampling *pTexDesc, const struct view *pResViewDesc) {
    CHECK_DRIVER();
    return pTexDesc ? make(pTexObject, MARK_TEXTURE, pResDesc, pTexDesc, pResViewDesc) : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuTexObjectDestroy(unsigned long long texObject) { return destroy(texObject, MARK_TEXTURE); }

static CUresult resource_of(struct resource *resource, unsigned long long handle, enum mark mark) {
    CURRENT(context);
    (void)context;
    struct texture *texture = find(handle, mark, __func__);
    if (!resource || !texture)
        return CUDA_ERROR_INVALID_VALUE;
    *resource = texture->resource;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuTexObjectGetResourceDesc(struct resource *pResDesc, unsigned long long texObject) {
    return resource_of(pResDesc, texObject, MARK_TEXTURE);
}

EXPORT CUresult cuTexObjectGetTextureDesc(struct sampling *pTexDesc, unsigned long long texObject) {
    CURRENT(context);
    (void)context;
    struct texture *texture = find(texObject, MARK_TEXTURE, __func__);
    if (!pTexDesc || !texture)
        return CUDA_ERROR_INVALID_VALUE;
    *pTexDesc = texture->sampling;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuTexObjectGetResourceViewDesc(struct view *pResViewDesc, unsigned long long texObject) {
    CURRENT(context);
    (void)context;
    struct texture *texture = find(texObject, MARK_TEXTURE, __func__);
    if (!pResViewDesc || !texture || !texture->viewed)
        return CUDA_ERROR_INVALID_VALUE;
    *pResViewDesc = texture->view;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuSurfObjectCreate(unsigned long long *pSurfObject, const struct resource *pResDesc) {
    return make(pSurfObject, MARK_SURFACE, pResDesc, NULL, NULL);
}

EXPORT CUresult cuSurfObjectDestroy(unsigned long long surfObject) { return destroy(surfObject, MARK_SURFACE); }

EXPORT CUresult cuSurfObjectGetResourceDesc(struct resource *pResDesc, unsigned long long surfObject) {
    return resource_of(pResDesc, surfObject, MARK_SURFACE);
}
