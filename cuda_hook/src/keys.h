#ifndef EDGESHARE_KEYS_H
#define EDGESHARE_KEYS_H

#include "driver_api.h"

/* The key of a submission in the table of usual times. A kernel's time goes with its grid, a copy's with its size, so
 * the magnitude (a power of two) of that is part of the key: few keys, and within one the times are alike.
 * Pointers of user space have their upper 16 bits zero (x86-64 with 4 levels, aarch64 with 48 bits); where they have
 * not, two keys may coincide, which costs accuracy and nothing else. */

enum es_copy_kind { ES_COPY_ANY, ES_COPY_IN, ES_COPY_OUT, ES_COPY_WITHIN, ES_COPY_PEER, ES_SET };

static inline uint64_t es_magnitude(uint64_t size)
{
    return 64 - (uint64_t)__builtin_clzll(size | 1);
}

static inline uint64_t es_key_kernel(CUfunction f, unsigned int x, unsigned int y, unsigned int z)
{
    return (uint64_t)(uintptr_t)f ^ es_magnitude((uint64_t)x * y * z) << 56;
}

static inline uint64_t es_key_kernel_ex(const CUlaunchConfig *config, CUfunction f)
{
    return config == NULL ? es_key_kernel(f, 0, 0, 0)
                          : es_key_kernel(f, config->gridDimX, config->gridDimY, config->gridDimZ);
}

static inline CUstream es_config_stream(const CUlaunchConfig *config)
{
    return config == NULL ? NULL : config->hStream;
}

static inline uint64_t es_key_multi(const CUDA_LAUNCH_PARAMS *list, unsigned int count)
{
    return list == NULL || count == 0 ? es_key_kernel(NULL, 0, 0, 0)
                                      : es_key_kernel(list->function, list->gridDimX, list->gridDimY, list->gridDimZ);
}

static inline CUstream es_multi_stream(const CUDA_LAUNCH_PARAMS *list, unsigned int count)
{
    return list == NULL || count == 0 ? NULL : list->hStream;
}

static inline uint64_t es_key_graph(CUgraphExec graph)
{
    return (uint64_t)(uintptr_t)graph ^ UINT64_C(0x7D) << 56;
}

static inline uint64_t es_key_upload(CUgraphExec graph)
{
    return (uint64_t)(uintptr_t)graph ^ UINT64_C(0x7E) << 56;
}

static inline uint64_t es_key_copy(enum es_copy_kind kind, uint64_t bytes)
{
    return UINT64_C(0x7F) << 56 | (uint64_t)(kind + 1) << 8 | es_magnitude(bytes);
}

static inline enum es_copy_kind es_direction(CUmemorytype from, CUmemorytype to)
{
    if (from == CU_MEMORYTYPE_UNIFIED || to == CU_MEMORYTYPE_UNIFIED)
        return ES_COPY_ANY;
    if (from == CU_MEMORYTYPE_HOST)
        return ES_COPY_IN;
    return to == CU_MEMORYTYPE_HOST ? ES_COPY_OUT : ES_COPY_WITHIN;
}

static inline uint64_t es_key_copy_2d(const CUDA_MEMCPY2D *copy)
{
    return copy == NULL ? es_key_copy(ES_COPY_ANY, 0)
                        : es_key_copy(es_direction(copy->srcMemoryType, copy->dstMemoryType),
                                      copy->WidthInBytes * copy->Height);
}

static inline uint64_t es_key_copy_3d(const CUDA_MEMCPY3D *copy)
{
    return copy == NULL ? es_key_copy(ES_COPY_ANY, 0)
                        : es_key_copy(es_direction(copy->srcMemoryType, copy->dstMemoryType),
                                      copy->WidthInBytes * copy->Height * copy->Depth);
}

static inline uint64_t es_key_copy_3d_peer(const CUDA_MEMCPY3D_PEER *copy)
{
    return copy == NULL ? es_key_copy(ES_COPY_PEER, 0)
                        : es_key_copy(ES_COPY_PEER, copy->WidthInBytes * copy->Height * copy->Depth);
}

#endif
