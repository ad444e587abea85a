/* References, which textures and surfaces were before there were objects of them: of modules, which CUDA 12 no longer compiles,
 * and made. No kernel reads them here: they hold what they are told. */
#include "driver/allocation/allocation.h"
#include "driver/array/array.h"
#include "driver/base/driver.h"
#include "driver/base/entries.h"
#include "driver/base/objects.h"
#include "driver/context/context.h"
#include "driver/module/function.h"

struct reference {
    enum mark mark;
    CUarray array;
    CUdeviceptr address;
    int format, channels;
    int address_mode[3];
    int filter_mode;
    unsigned int flags;
};

static struct object_pool references = {.lock = PTHREAD_MUTEX_INITIALIZER};

#define REFERENCE(reference)                   \
    do {                                       \
        CHECK_DRIVER();                        \
        if (!LIVES(reference, MARK_REFERENCE)) \
            return CUDA_ERROR_INVALID_HANDLE;  \
    } while (0)

/* The image's reader knows kernels and globals: no module has a reference. */
EXPORT CUresult cuModuleGetTexRef(struct reference **pTexRef, CUmodule hmod, const char *name) {
    CURRENT(context);
    (void)context;
    return pTexRef && hmod && name ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuModuleGetSurfRef(struct reference **pSurfRef, CUmodule hmod, const char *name) {
    CURRENT(context);
    (void)context;
    return pSurfRef && hmod && name ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuTexRefCreate(struct reference **pTexRef) {
    CURRENT(context);
    (void)context;
    if (!pTexRef)
        return CUDA_ERROR_INVALID_VALUE;
    struct reference *reference = object_make(&references, sizeof *reference);
    if (!reference)
        return CUDA_ERROR_OUT_OF_MEMORY;
    reference->mark = MARK_REFERENCE;
    *pTexRef = reference;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuTexRefDestroy(struct reference *hTexRef) {
    REFERENCE(hTexRef);
    object_drop(&references, hTexRef);
    return CUDA_SUCCESS;
}

static CUresult set_array(struct reference *reference, CUarray array) {
    REFERENCE(reference);
    CUresult result = check_array(array);
    if (result == CUDA_SUCCESS)
        reference->array = array;
    return result;
}

static CUresult get_array(CUarray *array, const struct reference *reference) {
    REFERENCE(reference);
    if (!array || !reference->array)
        return CUDA_ERROR_INVALID_VALUE;
    *array = reference->array;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuTexRefSetArray(struct reference *hTexRef, CUarray hArray, unsigned int Flags) {
    (void)Flags;
    return set_array(hTexRef, hArray);
}

EXPORT CUresult cuTexRefGetArray(CUarray *phArray, struct reference *hTexRef) { return get_array(phArray, hTexRef); }

EXPORT CUresult cuSurfRefSetArray(struct reference *hSurfRef, CUarray hArray, unsigned int Flags) {
    (void)Flags;
    return set_array(hSurfRef, hArray);
}

EXPORT CUresult cuSurfRefGetArray(CUarray *phArray, struct reference *hSurfRef) { return get_array(phArray, hSurfRef); }

static CUresult set_address(struct reference *reference, CUdeviceptr address) {
    REFERENCE(reference);
    struct allocation allocation;
    if (!find_allocation(address, &allocation))
        return CUDA_ERROR_INVALID_VALUE;
    reference->address = address;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuTexRefSetAddress_v2(size_t *ByteOffset, struct reference *hTexRef, CUdeviceptr dptr, size_t bytes) {
    (void)bytes;
    CUresult result = set_address(hTexRef, dptr);
    if (result == CUDA_SUCCESS && ByteOffset)
        *ByteOffset = 0;
    return result;
}

EXPORT CUresult cuTexRefSetAddress2D_v3(struct reference *hTexRef, const CUDA_ARRAY_DESCRIPTOR *desc, CUdeviceptr dptr,
                                        size_t Pitch) {
    (void)Pitch;
    return desc ? set_address(hTexRef, dptr) : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuTexRefGetAddress_v2(CUdeviceptr *pdptr, struct reference *hTexRef) {
    REFERENCE(hTexRef);
    if (!pdptr || !hTexRef->address)
        return CUDA_ERROR_INVALID_VALUE;
    *pdptr = hTexRef->address;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuTexRefSetFormat(struct reference *hTexRef, int fmt, int NumPackedComponents) {
    REFERENCE(hTexRef);
    hTexRef->format = fmt;
    hTexRef->channels = NumPackedComponents;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuTexRefGetFormat(int *pFormat, int *pNumChannels, struct reference *hTexRef) {
    REFERENCE(hTexRef);
    if (!pFormat || !pNumChannels)
        return CUDA_ERROR_INVALID_VALUE;
    *pFormat = hTexRef->format;
    *pNumChannels = hTexRef->channels;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuTexRefSetAddressMode(struct reference *hTexRef, int dim, int am) {
    REFERENCE(hTexRef);
    if (dim < 0 || dim > 2)
        return CUDA_ERROR_INVALID_VALUE;
    hTexRef->address_mode[dim] = am;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuTexRefGetAddressMode(int *pam, struct reference *hTexRef, int dim) {
    REFERENCE(hTexRef);
    if (!pam || dim < 0 || dim > 2)
        return CUDA_ERROR_INVALID_VALUE;
    *pam = hTexRef->address_mode[dim];
    return CUDA_SUCCESS;
}

EXPORT CUresult cuTexRefSetFilterMode(struct reference *hTexRef, int fm) {
    REFERENCE(hTexRef);
    hTexRef->filter_mode = fm;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuTexRefGetFilterMode(int *pfm, struct reference *hTexRef) {
    REFERENCE(hTexRef);
    if (!pfm)
        return CUDA_ERROR_INVALID_VALUE;
    *pfm = hTexRef->filter_mode;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuTexRefSetFlags(struct reference *hTexRef, unsigned int Flags) {
    REFERENCE(hTexRef);
    hTexRef->flags = Flags;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuTexRefGetFlags(unsigned int *pFlags, struct reference *hTexRef) {
    REFERENCE(hTexRef);
    if (!pFlags)
        return CUDA_ERROR_INVALID_VALUE;
    *pFlags = hTexRef->flags;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuParamSetTexRef(CUfunction hfunc, int texunit, struct reference *hTexRef) {
    REFERENCE(hTexRef);
    struct CUfunc_st *function;
    const int any_unit = -1; /* CU_PARAM_TR_DEFAULT, the only one that is allowed */
    return texunit == any_unit ? find_function(hfunc, &function, __func__) : CUDA_ERROR_INVALID_VALUE;
}
