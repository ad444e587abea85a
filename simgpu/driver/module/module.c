/* Modules and the functions in them. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver/allocation/allocation.h"
#include "driver/base/driver.h"
#include "driver/base/objects.h"
#include "driver/context/context.h"
#include "driver/memory/memory.h"
#include "driver/module/code.h"
#include "driver/module/cubin.h"
#include "driver/module/function.h"
#include "driver/module/module.h"

static struct object_pool module_pool = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct object_pool function_pool = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct CUmod_st *modules; /* under driver.lock, like all functions' lists */

CUresult find_function(CUfunction handle, struct CUfunc_st **function, const char *call) {
    if (!is_live(handle, MARK_FUNCTION, call))
        return CUDA_ERROR_INVALID_HANDLE;
    *function = handle;
    return CUDA_SUCCESS;
}

/* ---- loading ---- */

/* The magic numbers of machine code: ELF (cubin), a fat binary, the wrapper that nvcc puts around one. */
static bool is_opaque(const void *image) {
    uint32_t magic;
    memcpy(&magic, image, sizeof magic);
    return magic == 0x464c457f || magic == 0xba55ed50 || magic == 0x466243b1;
}

/* Frees a module that is in no list. */
static void unload(struct CUmod_st *module) {
    while (module->functions) {
        struct CUfunc_st *function = module->functions;
        module->functions = function->next;
        if (function->own_kernel)
            free((void *)function->kernel);
        object_drop(&function_pool, function);
    }
    for (uint32_t index = 0; index < module->image.globals; index++) {
        if (module->addresses[index])
            release(module->addresses[index], ALLOCATION_DEVICE);
    }
    free(module->addresses);
    code_unload(module);
    ptx_free(&module->image);
    object_drop(&module_pool, module);
}

CUresult module_load(struct CUmod_st **made, struct CUctx_st *context, const void *image) {
    struct CUmod_st *module = object_make(&module_pool, sizeof *module);
    if (!module)
        return CUDA_ERROR_OUT_OF_MEMORY;
    enum ptx_status status = PTX_OK;
    if (is_opaque(image)) {
        module->image.opaque = true;
        /* What is in a fat binary is compressed, mostly. */
        if (memcmp(image, "\177ELF", 4) == 0)
            status = cubin_variables(image, &module->image);
    } else
        status = ptx_read(image, &module->image);
    if (status == PTX_OK && module->image.globals) {
        module->addresses = calloc(module->image.globals, sizeof *module->addresses);
        status = module->addresses ? PTX_OK : PTX_NO_MEMORY;
    }
    if (status != PTX_OK) {
        ptx_free(&module->image);
        object_drop(&module_pool, module);
        return status == PTX_NOT_AN_IMAGE ? CUDA_ERROR_INVALID_IMAGE
               : status == PTX_BAD        ? CUDA_ERROR_INVALID_PTX
                                          : CUDA_ERROR_OUT_OF_MEMORY;
    }
    module->context = context;
    module->image_bytes = image_bytes(image);
    if (context && !loads_lazily() && code_load(module, context) != CUDA_SUCCESS) {
        unload(module);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    module->mark = MARK_MODULE;
    pthread_mutex_lock(&driver.lock);
    module->next = modules;
    modules = module;
    pthread_mutex_unlock(&driver.lock);
    *made = module;
    return CUDA_SUCCESS;
}

CUresult module_load_file(struct CUmod_st **made, struct CUctx_st *context, const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (fd < 0)
        return CUDA_ERROR_FILE_NOT_FOUND;
    CUresult result = CUDA_ERROR_OPERATING_SYSTEM;
    char *image = fstat(fd, &status) == 0 ? calloc(1, (size_t)status.st_size + 8) : NULL;
    ssize_t got = image ? read(fd, image, (size_t)status.st_size) : -1;
    close(fd);
    if (got >= 0)
        result = module_load(made, context, image);
    free(image);
    return result;
}

/* Under driver.lock. */
static void unlink_module(struct CUmod_st *module) {
    for (struct CUmod_st **link = &modules; *link; link = &(*link)->next) {
        if (*link == module) {
            *link = module->next;
            return;
        }
    }
}

void modules_end(struct CUctx_st *context) {
    for (;;) {
        pthread_mutex_lock(&driver.lock);
        struct CUmod_st *module = modules;
        while (module && module->context != context)
            module = module->next;
        if (module)
            unlink_module(module);
        pthread_mutex_unlock(&driver.lock);
        if (!module)
            return;
        unload(module);
    }
}

/* The entry points never call each other: a library in front of this one would see calls that nobody made. */
static CUresult load_data(CUmodule *module, const void *image) {
    CURRENT(context);
    if (!module || !image)
        return CUDA_ERROR_INVALID_VALUE;
    return module_load(module, context, image);
}

EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image) { return load_data(module, image); }

EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions, CUjit_option *options,
                                   void **optionValues) {
    if (numOptions && (!options || !optionValues))
        return CUDA_ERROR_INVALID_VALUE;
    return load_data(module, image);
}

EXPORT CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin) { return load_data(module, fatCubin); }

EXPORT CUresult cuModuleLoad(CUmodule *module, const char *fname) {
    CURRENT(context);
    if (!module || !fname)
        return CUDA_ERROR_INVALID_VALUE;
    return module_load_file(module, context, fname);
}

CUresult module_unload(struct CUmod_st *module) {
    MODULE(module);
    pthread_mutex_lock(&driver.lock);
    unlink_module(module);
    pthread_mutex_unlock(&driver.lock);
    unload(module);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleUnload(CUmodule hmod) { return module_unload(hmod); }

EXPORT CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode) {
    if (!mode)
        return CUDA_ERROR_INVALID_VALUE;
    *mode = loads_lazily() ? CU_MODULE_LAZY_LOADING : CU_MODULE_EAGER_LOADING;
    return CUDA_SUCCESS;
}

/* ---- functions ---- */

/* Machine code names no kernels that can be read here: each name asked for is taken to be one. */
static const struct kernel *opaque_kernel(const char *name) {
    struct kernel *kernel = calloc(1, sizeof *kernel);
    if (kernel)
        snprintf(kernel->name, sizeof kernel->name, "%s", name);
    return kernel;
}

CUresult module_function(struct CUfunc_st **made, struct CUmod_st *module, struct CUctx_st *context, const char *name) {
    const struct kernel *kernel = NULL;
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&driver.lock);
    *made = NULL;
    for (struct CUfunc_st *function = module->functions; function && !*made; function = function->next) {
        if (function->context == context && strcmp(function->kernel->name, name) == 0)
            *made = function;
    }
    for (uint32_t index = 0; !*made && index < module->image.kernels && !kernel; index++) {
        if (strcmp(module->image.kernel[index].name, name) == 0)
            kernel = &module->image.kernel[index];
    }
    bool own = !*made && !kernel && module->image.opaque;
    if (own)
        kernel = opaque_kernel(name);
    if (!*made && !kernel)
        result = CUDA_ERROR_NOT_FOUND;
    if (!*made && kernel) {
        struct CUfunc_st *function = object_make(&function_pool, sizeof *function);
        if (function) {
            function->mark = MARK_FUNCTION;
            function->context = context;
            function->module = module;
            function->kernel = kernel;
            function->own_kernel = own;
            function->next = module->functions;
            module->functions = function;
        } else {
            result = CUDA_ERROR_OUT_OF_MEMORY;
        }
        *made = function;
    }
    pthread_mutex_unlock(&driver.lock);
    return result;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name) {
    MODULE(hmod);
    if (!hfunc || !name)
        return CUDA_ERROR_INVALID_VALUE;
    struct CUfunc_st *function;
    CUresult result = module_function(&function, hmod, hmod->context, name);
    if (result == CUDA_SUCCESS)
        *hfunc = function;
    return result;
}

CUresult module_count(unsigned int *count, struct CUmod_st *module) {
    MODULE(module);
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = module->image.kernels;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule mod) { return module_count(count, mod); }

CUresult module_enumerate(CUfunction *functions, unsigned int count, CUmodule module) {
    MODULE(module);
    if (!functions)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    for (unsigned int index = 0; result == CUDA_SUCCESS && index < count && index < module->image.kernels; index++)
        result = module_function(&functions[index], module, module->context, module->image.kernel[index].name);
    return result;
}

EXPORT CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions, CUmodule mod) {
    return module_enumerate(functions, numFunctions, mod);
}

CUresult module_global(CUdeviceptr *dptr, size_t *bytes, struct CUmod_st *module, struct CUctx_st *context, const char *name) {
    for (uint32_t index = 0; index < module->image.globals; index++) {
        if (strcmp(module->image.global[index].name, name) != 0)
            continue;
        /* Its memory is made when it is first asked for. */
        if (!module->addresses[index]) {
            CUresult result =
                allocate(context, module->image.global[index].size, ALLOCATION_DEVICE, 0, NULL, &module->addresses[index]);
            if (result != CUDA_SUCCESS)
                return result;
        }
        if (dptr)
            *dptr = module->addresses[index];
        if (bytes)
            *bytes = module->image.global[index].size;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
}

EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name) {
    MODULE(hmod);
    return name ? module_global(dptr, bytes, hmod, hmod->context, name) : CUDA_ERROR_INVALID_VALUE;
}
