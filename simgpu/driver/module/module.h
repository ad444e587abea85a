/* A module: an image and what was asked of it. */
#ifndef SIMGPU_MODULE_H
#define SIMGPU_MODULE_H

#include "driver/base/driver.h"
#include "driver/base/objects.h"
#include "driver/module/ptx.h"

struct CUmod_st {
    enum mark mark;
    struct CUctx_st *context; /* NULL: a library */
    struct image image;
    size_t image_bytes;
    struct code *code;    /* contexts that have its image */
    uintptr_t *addresses; /* of the globals; 0: not made yet */
    struct CUfunc_st *functions;
    struct CUmod_st *next;
};

/* Returns when the handle is no module's. */
#define MODULE(module)                        \
    do {                                      \
        CHECK_DRIVER();                       \
        if (!LIVES(module, MARK_MODULE))      \
            return CUDA_ERROR_INVALID_HANDLE; \
    } while (0)

/* Makes a module of an image; `context` NULL: a library. */
CUresult module_load(struct CUmod_st **made, struct CUctx_st *context, const void *image);
CUresult module_load_file(struct CUmod_st **made, struct CUctx_st *context, const char *path);
CUresult module_unload(struct CUmod_st *module);
/* Ends all of a context. */
void modules_end(struct CUctx_st *context);
CUresult module_count(unsigned int *count, struct CUmod_st *module);
CUresult module_enumerate(CUfunction *functions, unsigned int count, CUmodule module);
/* The function of that name, for a context; NULL: as a library's kernel. */
CUresult module_function(struct CUfunc_st **made, struct CUmod_st *module, struct CUctx_st *context, const char *name);
CUresult module_global(CUdeviceptr *dptr, size_t *bytes, struct CUmod_st *module, struct CUctx_st *context, const char *name);

#endif
