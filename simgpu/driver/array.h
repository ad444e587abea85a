/* Arrays: memory whose layout is the driver's own affair. Here its rows lie one after the other. */
#ifndef SIMGPU_ARRAY_H
#define SIMGPU_ARRAY_H

#include "driver/memory.h"

struct CUarray_st {
    enum mark mark;
    struct CUctx_st *context;
    uint64_t context_id;
    CUDA_ARRAY3D_DESCRIPTOR description;
    size_t element;   /* bytes */
    size_t row;       /* bytes */
    size_t rows;      /* of a plane */
    size_t planes;    /* deep, or layers */
    uintptr_t begin;  /* 0: its memory is mapped later */
    bool level;       /* of a mipmapped array, which owns it */
    struct CUarray_st *next;
};

/* CUDA_SUCCESS where the handle is an array with memory. */
CUresult check_array(const struct CUarray_st *array);
/* The same for a part of its first row, in bytes. */
CUresult check_array_line(const struct CUarray_st *array, size_t offset, size_t bytes);
void arrays_end(struct CUctx_st *context);

#endif
