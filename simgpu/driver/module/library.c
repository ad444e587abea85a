/* Libraries: a library is a module of no context, its kernels are functions of none. */
#include "driver/base/driver.h"
#include "driver/context/context.h"
#include "driver/module/function.h"
#include "driver/module/module.h"

EXPORT CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions, void **jitOptionsValues,
                                  unsigned int numJitOptions, CUlibraryOption *libraryOptions, void **libraryOptionValues,
                                  unsigned int numLibraryOptions) {
    CHECK_DRIVER();
    (void)libraryOptionValues;
    if (!library || !code || (numJitOptions && (!jitOptions || !jitOptionsValues)) || (numLibraryOptions && !libraryOptions))
        return CUDA_ERROR_INVALID_VALUE;
    return module_load((struct CUmod_st **)library, NULL, code);
}

EXPORT CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions, void **jitOptionsValues,
                                      unsigned int numJitOptions, CUlibraryOption *libraryOptions, void **libraryOptionValues,
                                      unsigned int numLibraryOptions) {
    CHECK_DRIVER();
    (void)libraryOptionValues;
    if (!library || !fileName || (numJitOptions && (!jitOptions || !jitOptionsValues)) || (numLibraryOptions && !libraryOptions))
        return CUDA_ERROR_INVALID_VALUE;
    return module_load_file((struct CUmod_st **)library, NULL, fileName);
}

EXPORT CUresult cuLibraryUnload(CUlibrary library) { return module_unload((CUmodule)library); }

EXPORT CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name) {
    MODULE((CUmodule)library);
    if (!pKernel || !name)
        return CUDA_ERROR_INVALID_VALUE;
    return module_function((struct CUfunc_st **)pKernel, (CUmodule)library, NULL, name);
}

EXPORT CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib) { return module_count(count, (CUmodule)lib); }

EXPORT CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels, CUlibrary lib) {
    return module_enumerate((CUfunction *)kernels, numKernels, (CUmodule)lib);
}

/* In every context a library is the same module here. */
EXPORT CUresult cuLibraryGetModule(CUmodule *pMod, CUlibrary library) {
    CURRENT(context);
    (void)context;
    MODULE((CUmodule)library);
    if (!pMod)
        return CUDA_ERROR_INVALID_VALUE;
    *pMod = (CUmodule)library;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name) {
    CURRENT(context);
    MODULE((CUmodule)library);
    return name ? module_global(dptr, bytes, (CUmodule)library, context, name) : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel) {
    CURRENT(context);
    struct CUfunc_st *found;
    CUresult result = find_function((CUfunction)kernel, &found, __func__);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pFunc)
        return CUDA_ERROR_INVALID_VALUE;
    return module_function(pFunc, found->module, context, found->kernel->name);
}
