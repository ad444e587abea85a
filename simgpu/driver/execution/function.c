/* What a function can be asked and told. */
#include "driver/module/function.h"
#include "driver/base/driver.h"
#include "driver/base/entries.h"
#include "driver/context/banks.h"
#include "driver/context/context.h"
#include "driver/context/device.h"
#include "driver/module/code.h"
#include "driver/module/module.h"

#define FUNCTION(handle, function)                                                 \
    struct CUfunc_st *function;                                                    \
    do {                                                                           \
        CHECK_DRIVER();                                                            \
        CUresult check = find_function((CUfunction)(handle), &function, __func__); \
        if (check != CUDA_SUCCESS)                                                 \
            return check;                                                          \
    } while (0)

static const struct simgpu_model *model_of(const struct CUfunc_st *function) {
    return &gpu_of_device(function->context ? function->context->device : 0)->model;
}

static CUresult get_attribute(int *value, CUfunction_attribute attribute, CUfunction handle) {
    FUNCTION(handle, function);
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = 32; break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: {
        const struct simgpu_model *model = model_of(function);
        *value = (int)(model->compute_major * 10 + model->compute_minor);
        break;
    }
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = function->max_dynamic_shared_bytes ? function->max_dynamic_shared_bytes : 49152;
        break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = function->carveout; break;
    default:
        if ((unsigned int)attribute > CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE)
            return CUDA_ERROR_INVALID_VALUE;
        *value = 0;
    }
    return CUDA_SUCCESS;
}

static CUresult set_attribute(CUfunction handle, CUfunction_attribute attribute, int value) {
    FUNCTION(handle, function);
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        if (value < 0 || value > most_shared_bytes(model_of(function)))
            return CUDA_ERROR_INVALID_VALUE;
        function->max_dynamic_shared_bytes = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        if (value < -1 || value > 100)
            return CUDA_ERROR_INVALID_VALUE;
        function->carveout = value;
        return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

EXPORT CUresult cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc) {
    return get_attribute(pi, attrib, hfunc);
}
EXPORT CUresult cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev) {
    CHECK_DRIVER();
    return valid_device(dev) ? get_attribute(pi, attrib, (CUfunction)kernel) : CUDA_ERROR_INVALID_DEVICE;
}
EXPORT CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value) {
    return set_attribute(hfunc, attrib, value);
}
EXPORT CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev) {
    CHECK_DRIVER();
    return valid_device(dev) ? set_attribute((CUfunction)kernel, attrib, val) : CUDA_ERROR_INVALID_DEVICE;
}

EXPORT CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config) {
    FUNCTION(hfunc, function);
    (void)function;
    return (unsigned int)config > CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
EXPORT CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev) {
    FUNCTION(kernel, function);
    (void)function;
    if (!valid_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    return (unsigned int)config > CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult module_of_function(CUmodule *module, CUfunction handle) {
    FUNCTION(handle, function);
    if (!module)
        return CUDA_ERROR_INVALID_VALUE;
    *module = function->module;
    return CUDA_SUCCESS;
}
EXPORT CUresult cuFuncGetModule(CUmodule *hmod, CUfunction hfunc) { return module_of_function(hmod, hfunc); }
EXPORT CUresult cuKernelGetLibrary(CUlibrary *pLib, CUkernel kernel) {
    return module_of_function((CUmodule *)pLib, (CUfunction)kernel);
}

static CUresult get_name(const char **name, CUfunction handle) {
    FUNCTION(handle, function);
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    *name = function->kernel->name;
    return CUDA_SUCCESS;
}
EXPORT CUresult cuFuncGetName(const char **name, CUfunction hfunc) { return get_name(name, hfunc); }
EXPORT CUresult cuKernelGetName(const char **name, CUkernel hfunc) { return get_name(name, (CUfunction)hfunc); }

static CUresult get_param(CUfunction handle, size_t index, size_t *offset, size_t *size) {
    FUNCTION(handle, function);
    if (!offset || index >= function->kernel->params)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = function->kernel->param[index].offset;
    if (size)
        *size = function->kernel->param[index].size;
    return CUDA_SUCCESS;
}
EXPORT CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset, size_t *paramSize) {
    return get_param(func, paramIndex, paramOffset, paramSize);
}
EXPORT CUresult cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t *paramOffset, size_t *paramSize) {
    return get_param((CUfunction)kernel, paramIndex, paramOffset, paramSize);
}

EXPORT CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function) {
    FUNCTION(function, found);
    if (!state)
        return CUDA_ERROR_INVALID_VALUE;
    if (!found->context)
        return CUDA_ERROR_INVALID_HANDLE;
    *state =
        code_is_loaded(found->module, found->context) ? CU_FUNCTION_LOADING_STATE_LOADED : CU_FUNCTION_LOADING_STATE_UNLOADED;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncLoad(CUfunction function) {
    FUNCTION(function, found);
    return found->context ? function_load(found, found->context) : CUDA_ERROR_INVALID_HANDLE;
}

/* ---- occupancy: threads alone limit it ---- */

static CUresult active_blocks(int *blocks, CUfunction handle, int block_size) {
    FUNCTION(handle, function);
    if (!blocks || block_size <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    const struct simgpu_model *model = &gpu_of_device(function->context ? function->context->device : 0)->model;
    int most = (int)model->threads_per_multiprocessor / ((block_size + 31) / 32 * 32);
    *blocks = block_size > 1024 ? 0 : most > 16 ? 16 : most;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func, int blockSize,
                                                            size_t dynamicSMemSize) {
    (void)dynamicSMemSize;
    return active_blocks(numBlocks, func, blockSize);
}
EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, CUfunction func, int blockSize,
                                                                     size_t dynamicSMemSize, unsigned int flags) {
    (void)dynamicSMemSize;
    return flags > 1 ? CUDA_ERROR_INVALID_VALUE : active_blocks(numBlocks, func, blockSize);
}

static CUresult best_block(int *grid, int *block, CUfunction handle, int limit) {
    FUNCTION(handle, function);
    if (!grid || !block)
        return CUDA_ERROR_INVALID_VALUE;
    const struct simgpu_model *model = &gpu_of_device(function->context ? function->context->device : 0)->model;
    *block = limit > 0 && limit < 1024 ? limit : 1024;
    *grid = (int)(model->multiprocessors * (model->threads_per_multiprocessor / (uint32_t)*block));
    return CUDA_SUCCESS;
}

EXPORT CUresult cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
                                                 CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize,
                                                 int blockSizeLimit) {
    (void)blockSizeToDynamicSMemSize;
    (void)dynamicSMemSize;
    return best_block(minGridSize, blockSize, func, blockSizeLimit);
}
EXPORT CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize, CUfunction func,
                                                          CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize,
                                                          int blockSizeLimit, unsigned int flags) {
    (void)blockSizeToDynamicSMemSize;
    (void)dynamicSMemSize;
    return flags > 1 ? CUDA_ERROR_INVALID_VALUE : best_block(minGridSize, blockSize, func, blockSizeLimit);
}

EXPORT CUresult cuFuncSetSharedMemConfig(CUfunction hfunc, int config) {
    CHECK_DRIVER();
    struct CUfunc_st *function;
    if (config < BANKS_DEFAULT || config > BANKS_OF_8_BYTES)
        return CUDA_ERROR_INVALID_VALUE;
    return find_function(hfunc, &function, __func__);
}
