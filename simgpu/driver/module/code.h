/* What modules take of a GPU's memory: their images, in each context that runs something of them. */
#ifndef SIMGPU_CODE_H
#define SIMGPU_CODE_H

#include <stdbool.h>

#include "driver_api.h"

/* Bytes of an image that is given as it lies in memory: text, machine code or a fat binary. */
size_t image_bytes(const void *image);

/* Whether images are loaded when something in them first runs, rather than when the module is made. */
bool loads_lazily(void);

/* Loads a module for a context, once. CUDA_ERROR_OUT_OF_MEMORY where the GPU has no room. */
CUresult code_load(struct CUmod_st *module, struct CUctx_st *context);
bool code_is_loaded(const struct CUmod_st *module, const struct CUctx_st *context);
/* The module is over. */
void code_unload(struct CUmod_st *module);

/* Loads the module of a function that is about to run; costs one comparison when it is loaded. */
CUresult function_load(struct CUfunc_st *function, struct CUctx_st *context);

#endif
