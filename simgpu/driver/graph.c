/* Stream capture and graphs of kernels, copies and sets: a graph is a list of work in the order of its capture. */
#include <stdlib.h>

#include "driver/graph.h"

CUresult capture_work(struct CUstream_st *stream, uint32_t kind, uint64_t duration_ns, struct CUfunc_st *function) {
    (void)kind;
    (void)duration_ns;
    (void)function;
    (void)stream;
    return CUDA_ERROR_NOT_SUPPORTED;
}
