/* A kernel as a handle: a function of a module, or a library's. */
#ifndef SIMGPU_FUNCTION_H
#define SIMGPU_FUNCTION_H

#include "driver/base/objects.h"

struct kernel;

struct CUfunc_st {
    enum mark mark;
    struct CUctx_st *context; /* NULL: a kernel of a library, for any context */
    struct CUmod_st *module;
    const struct kernel *kernel;
    bool own_kernel; /* `kernel` is this function's alone */
    int max_dynamic_shared_bytes;
    int carveout;
    uint64_t loaded_in; /* id of the context that last ran it; 0: none */
    struct CUfunc_st *next;
};

/* The function behind a CUfunction or a CUkernel handle. */
CUresult find_function(CUfunction handle, struct CUfunc_st **function, const char *call);

#endif
