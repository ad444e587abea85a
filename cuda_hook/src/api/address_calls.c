#include "api/wrappers.h"
#include "driver/symbols.h"
#include "link/link.h"
#include "memory/account.h"
#include "memory/claims.h"
#include "memory/devices.h"
#include "memory/pools.h"

/* Plain, pitched and managed memory, and the host's own where the device has no other; and all that frees an address. And
 * what contexts keep for the code that runs in them. */

/* The declarations that every wrapper of an allocation begins with, and the first thing it does. Else than `when`,
 * the driver gets the call as it came. */
#define CLAIM(when, wanted)                                      \
    struct es_claim claim = {.counted = false};                  \
    CUcontext context = NULL;                                    \
    CUresult result;                                             \
                                                                 \
    if ((when) && !es_claim_take_here(&claim, &context, wanted)) \
    return CUDA_ERROR_OUT_OF_MEMORY

/* The end of one: `handle` is 0 when the driver refused. */
static CUresult conclude(struct es_claim *claim, CUresult result, enum es_block_kind kind, uint64_t handle, CUcontext context) {
    if (result == CUDA_SUCCESS)
        es_account_keep(claim, kind, handle, context);
    else
        es_account_drop(claim);
    return result;
}

CUresult es_cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize) {
    ES_REAL_OR_RETURN(cuMemAlloc_v2);
    {
        CLAIM(dptr != NULL, bytesize);
        result = ES_DRIVER(cuMemAlloc_v2)(dptr, bytesize);
        return conclude(&claim, result, ES_BLOCK_MEMORY, result == CUDA_SUCCESS ? *dptr : 0, context);
    }
}
ES_EXPORT(cuMemAlloc_v2);

CUresult es_cuMemAlloc(CUdeviceptr_v1 *dptr, unsigned int bytesize) {
    ES_REAL_OR_RETURN(cuMemAlloc);
    {
        CLAIM(dptr != NULL, bytesize);
        result = ES_DRIVER(cuMemAlloc)(dptr, bytesize);
        return conclude(&claim, result, ES_BLOCK_MEMORY, result == CUDA_SUCCESS ? *dptr : 0, context);
    }
}
ES_EXPORT(cuMemAlloc);

CUresult es_cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags) {
    ES_REAL_OR_RETURN(cuMemAllocManaged);
    {
        CLAIM(dptr != NULL && !es_link.ignore_managed, bytesize);
        result = ES_DRIVER(cuMemAllocManaged)(dptr, bytesize, flags);
        return conclude(&claim, result, ES_BLOCK_MEMORY, result == CUDA_SUCCESS ? *dptr : 0, context);
    }
}
ES_EXPORT(cuMemAllocManaged);

/* More than any device has, where it is more than the type holds. */
static uint64_t rows_bytes(uint64_t pitch, uint64_t height) {
    uint64_t bytes;

    return __builtin_mul_overflow(pitch, height, &bytes) ? UINT64_MAX : bytes;
}

/* Rows start at multiples of this: what the driver chooses is known only afterwards (512 on all devices since Kepler,
 * CUDA C++ Programming Guide), and what it really took counts. */
static uint64_t pitched_bytes(uint64_t width, uint64_t height) {
    const uint64_t pitch = (width + 511) / 512 * 512;

    return pitch < width ? UINT64_MAX : rows_bytes(pitch, height);
}

CUresult es_cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
                               unsigned int ElementSizeBytes) {
    ES_REAL_OR_RETURN(cuMemAllocPitch_v2);
    {
        CLAIM(dptr != NULL && pPitch != NULL, pitched_bytes(WidthInBytes, Height));
        result = ES_DRIVER(cuMemAllocPitch_v2)(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
        if (result == CUDA_SUCCESS && !es_claim_fit(&claim, rows_bytes(*pPitch, Height))) {
            (void)ES_DRIVER(cuMemFree_v2)(*dptr);
            result = CUDA_ERROR_OUT_OF_MEMORY;
        }
        return conclude(&claim, result, ES_BLOCK_MEMORY, result == CUDA_SUCCESS ? *dptr : 0, context);
    }
}
ES_EXPORT(cuMemAllocPitch_v2);

CUresult es_cuMemAllocPitch(CUdeviceptr_v1 *dptr, unsigned int *pPitch, unsigned int WidthInBytes, unsigned int Height,
                            unsigned int ElementSizeBytes) {
    ES_REAL_OR_RETURN(cuMemAllocPitch);
    {
        CLAIM(dptr != NULL && pPitch != NULL, pitched_bytes(WidthInBytes, Height));
        result = ES_DRIVER(cuMemAllocPitch)(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
        if (result == CUDA_SUCCESS && !es_claim_fit(&claim, rows_bytes(*pPitch, Height))) {
            (void)ES_DRIVER(cuMemFree_v2)(*dptr);
            result = CUDA_ERROR_OUT_OF_MEMORY;
        }
        return conclude(&claim, result, ES_BLOCK_MEMORY, result == CUDA_SUCCESS ? *dptr : 0, context);
    }
}
ES_EXPORT(cuMemAllocPitch);

/* A block is taken out before the driver frees it: another thread may get the address at once. Memory of a pool goes
 * back to its pool, which is then looked at. */
#define FREE(name, parameters, arguments)                                      \
    CUresult es_##name parameters {                                            \
        struct es_block block;                                                 \
        CUresult result;                                                       \
                                                                               \
        ES_REAL_OR_RETURN(name);                                               \
        block = es_account_take_out(ES_BLOCK_MEMORY, dptr);                    \
        if (block.address != 0) {                                              \
            result = ES_DRIVER(name) arguments;                                \
            es_account_settle(ES_BLOCK_MEMORY, block, result == CUDA_SUCCESS); \
        } else {                                                               \
            block = es_pools_take_out(dptr);                                   \
            result = ES_DRIVER(name) arguments;                                \
            es_pools_settle(block, result == CUDA_SUCCESS);                    \
        }                                                                      \
        return result;                                                         \
    }                                                                          \
    ES_EXPORT(name)

FREE(cuMemFree_v2, (CUdeviceptr dptr), (dptr));
FREE(cuMemFree, (CUdeviceptr_v1 dptr), (dptr));
FREE(cuMemFreeAsync, (CUdeviceptr dptr, CUstream hStream), (dptr, hStream));
FREE(cuMemFreeAsync_ptsz, (CUdeviceptr dptr, CUstream hStream), (dptr, hStream));

/* On an integrated GPU what is allocated for the host comes out of the same memory. */
static bool integrated_here(void) {
    CUdevice device;

    return es_device_current(&device) && es_device_integrated(device);
}

#define ALLOCATE_HOST(name, parameters, arguments)                                                                          \
    CUresult es_##name parameters {                                                                                         \
        ES_REAL_OR_RETURN(name);                                                                                            \
        {                                                                                                                   \
            CLAIM(pp != NULL && integrated_here(), bytesize);                                                               \
            result = ES_DRIVER(name) arguments;                                                                             \
            return conclude(&claim, result, ES_BLOCK_HOST, result == CUDA_SUCCESS ? (uint64_t)(uintptr_t)*pp : 0, context); \
        }                                                                                                                   \
    }                                                                                                                       \
    ES_EXPORT(name)

ALLOCATE_HOST(cuMemAllocHost_v2, (void **pp, size_t bytesize), (pp, bytesize));
ALLOCATE_HOST(cuMemAllocHost, (void **pp, unsigned int bytesize), (pp, bytesize));
ALLOCATE_HOST(cuMemHostAlloc, (void **pp, size_t bytesize, unsigned int Flags), (pp, bytesize, Flags));

CUresult es_cuMemFreeHost(void *p) {
    struct es_block block;
    CUresult result;

    ES_REAL_OR_RETURN(cuMemFreeHost);
    block = es_account_take_out(ES_BLOCK_HOST, (uint64_t)(uintptr_t)p);
    result = ES_DRIVER(cuMemFreeHost)(p);
    es_account_settle(ES_BLOCK_HOST, block, result == CUDA_SUCCESS);
    return result;
}
ES_EXPORT(cuMemFreeHost);

/* What a context has for malloc and printf in kernels as long as nobody asks for more: part of what a context takes (CUDA C++
 * Programming Guide, "Heap Memory Allocation" and "Limitations" of formatted output). 0: that limit takes no memory that is
 * known beforehand. */
static uint64_t usual_bytes(CUlimit limit) {
    if (limit == CU_LIMIT_MALLOC_HEAP_SIZE)
        return 8 << 20;
    return limit == CU_LIMIT_PRINTF_FIFO_SIZE ? 1 << 20 : 0;
}

/* Counted from when it is asked for, whenever the driver takes it. */
CUresult es_cuCtxSetLimit(CUlimit limit, size_t value) {
    const uint64_t usual = usual_bytes(limit), wanted = value > usual ? value - usual : 0;
    struct es_block block, before;
    CUcontext context = NULL;
    struct es_claim claim;
    CUresult result;
    bool counted;

    ES_REAL_OR_RETURN(cuCtxSetLimit);
    if (usual == 0 || ES_DRIVER(cuCtxGetCurrent)(&context) != CUDA_SUCCESS || context == NULL)
        return ES_DRIVER(cuCtxSetLimit)(limit, value);
    before = es_account_take_out(ES_BLOCK_LIMIT, (uint64_t)(uintptr_t)context + (uint64_t)limit);
    result = CUDA_ERROR_OUT_OF_MEMORY;
    if (es_claim_take_here(&claim, &context, wanted > before.bytes ? wanted - before.bytes : 0))
        result = ES_DRIVER(cuCtxSetLimit)(limit, value);
    if (result != CUDA_SUCCESS) {
        es_account_drop(&claim);
        es_account_settle(ES_BLOCK_LIMIT, before, false);
        return result;
    }
    counted = claim.counted;
    es_account_use(&claim);
    block = before;
    if (counted || wanted < before.bytes)
        block = (struct es_block){(uint64_t)(uintptr_t)context + (uint64_t)limit, wanted, (uint32_t)claim.device, ES_BLOCK_LIMIT,
                                  context};
    if (wanted < before.bytes)
        es_account_free((CUdevice)before.device, before.bytes - wanted);
    if (block.bytes != 0 && !es_account_note(ES_BLOCK_LIMIT, block))
        es_account_free((CUdevice)block.device, block.bytes);
    return result;
}
ES_EXPORT(cuCtxSetLimit);
