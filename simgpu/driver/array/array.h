/* Arrays: memory whose layout is the driver's own affair. Here its rows lie one after the other. */
#ifndef SIMGPU_ARRAY_H
#define SIMGPU_ARRAY_H

#include "driver/array/owned.h"
#include "driver/base/sizes.h"

struct CUarray_st {
    struct owned owned;
    CUDA_ARRAY3D_DESCRIPTOR description;
    size_t element;  /* bytes */
    size_t row;      /* bytes */
    size_t rows;     /* of a plane */
    size_t planes;   /* deep, or layers */
    uintptr_t begin; /* 0: its memory is mapped later */
    bool level;      /* of a mipmapped array, which owns it */
};

/* As drivers report it for arrays whose memory is mapped later. */
#define TILE_BYTES ((size_t)64 << 10)

/* What it takes: rows are padded on the device; here only the charge is. */
static inline size_t array_bytes(const struct CUarray_st *array) {
    return round_up(array->row, BLOCK) * array->rows * array->planes;
}

/* CUDA_SUCCESS where the handle is an array with memory. */
CUresult check_array(const struct CUarray_st *array);
/* CUDA_SUCCESS where the handle is an array with memory, whose first row has such a part, in bytes. */
CUresult check_array_line(const struct CUarray_st *array, size_t offset, size_t bytes);
/* A new one that is in no list; CUDA_ERROR_INVALID_VALUE where there can be none such. */
CUresult array_make(struct CUctx_st *context, const CUDA_ARRAY3D_DESCRIPTOR *wanted, struct CUarray_st **made);
void array_destroy(struct CUarray_st *array);
void arrays_end(struct CUctx_st *context);
void mipmaps_end(struct CUctx_st *context);

#endif
