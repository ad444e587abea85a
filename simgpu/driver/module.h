/* A module: an image and what was asked of it. */
#ifndef SIMGPU_MODULE_H
#define SIMGPU_MODULE_H

#include "driver/driver.h"
#include "driver/ptx.h"

struct CUmod_st {
    enum mark mark;
    struct CUctx_st *context; /* NULL: a library */
    struct image image;
    uintptr_t *addresses; /* of the globals; 0: not made yet */
    struct CUfunc_st *functions;
    struct CUmod_st *next;
};

#endif
