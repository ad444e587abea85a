#ifndef EDGESHARE_KEYS_H
#define EDGESHARE_KEYS_H

#include "driver_api.h"

/* The key of a submission in the table of usual times. A kernel's time goes with its grid, a copy's with its size, so
 * the magnitude (a power of two) of that is part of the key: few keys, and within one the times are alike.
 * Pointers of user space have their upper 16 bits zero (x86-64 with 4 levels, aarch64 with 48 bits); where they have
 * not, two keys may coincide, which costs accuracy and nothing else. */

enum es_copy_kind {
    ES_COPY_ANY,
    ES_COPY_IN,
    ES_COPY_OUT,
    ES_COPY_WITHIN,
    ES_COPY_PEER,
    ES_SET,
    ES_PREFETCH,
    ES_DISCARD,
    ES_DECOMPRESS,
};

static inline uint64_t es_magnitude(uint64_t size) { return 64 - (uint64_t)__builtin_clzll(size | 1); }

static inline uint64_t es_key_kernel(CUfunction f, unsigned int x, unsigned int y, unsigned int z) {
    return (uint64_t)(uintptr_t)f ^ es_magnitude((uint64_t)x * y * z) << 56;
}

static inline uint64_t es_key_kernel_ex(const CUlaunchConfig *config, CUfunction f) {
    return config == NULL ? es_key_kernel(f, 0, 0, 0) : es_key_kernel(f, config->gridDimX, config->gridDimY, config->gridDimZ);
}

static inline CUstream es_config_stream(const CUlaunchConfig *config) { return config == NULL ? NULL : config->hStream; }

static inline uint64_t es_key_multi(const CUDA_LAUNCH_PARAMS *list, unsigned int count) {
    return list == NULL || count == 0 ? es_key_kernel(NULL, 0, 0, 0)
                                      : es_key_kernel(list->function, list->gridDimX, list->gridDimY, list->gridDimZ);
}

static inline CUstream es_multi_stream(const CUDA_LAUNCH_PARAMS *list, unsigned int count) {
    return list == NULL || count == 0 ? NULL : list->hStream;
}

static inline uint64_t es_key_graph(CUgraphExec graph) { return (uint64_t)(uintptr_t)graph ^ UINT64_C(0x7D) << 56; }

static inline uint64_t es_key_upload(CUgraphExec graph) { return (uint64_t)(uintptr_t)graph ^ UINT64_C(0x7E) << 56; }

static inline uint64_t es_key_copy(enum es_copy_kind kind, uint64_t bytes) {
    return UINT64_C(0x7F) << 56 | (uint64_t)(kind + 1) << 8 | es_magnitude(bytes);
}

static inline enum es_copy_kind es_direction(CUmemorytype from, CUmemorytype to) {
    if (from == CU_MEMORYTYPE_UNIFIED || to == CU_MEMORYTYPE_UNIFIED)
        return ES_COPY_ANY;
    if (from == CU_MEMORYTYPE_HOST)
        return ES_COPY_IN;
    return to == CU_MEMORYTYPE_HOST ? ES_COPY_OUT : ES_COPY_WITHIN;
}

/* A kernel, or a graph: its call waits for nothing. A kernel's grid is of at most 65 magnitudes. */
static inline bool es_key_is_launch(uint64_t key) { return key >> 56 <= 65 || key >> 56 == 0x7D; }

/* One that may be a blocking call. */
static inline bool es_key_is_copy(uint64_t key) { return key >> 56 == 0x7F; }

/* A copy of less than two pages, or as much that is set: it takes the device some microseconds over any link, which is less than what
 * the host's calls leave open. Not where pages may have to be moved, or several are in one call. Simulated: where these are timed as
 * all else, seven clients of 100 random programs are told over 2 % too much, not six, which chance does, too. */
static inline bool es_key_is_brief(uint64_t key) {
    const uint64_t kind = (key >> 8 & 0xFF) - 1;

    return es_key_is_copy(key) && (key >> 16 & 0xFFFFFFFF) == 0 && (key & 0xFF) <= es_magnitude(4096) &&
           (kind == ES_COPY_IN || kind == ES_COPY_OUT || kind == ES_COPY_WITHIN || kind == ES_SET);
}

static inline uint64_t es_key_copy_2d(const CUDA_MEMCPY2D *copy) {
    return copy == NULL ? es_key_copy(ES_COPY_ANY, 0)
                        : es_key_copy(es_direction(copy->srcMemoryType, copy->dstMemoryType), copy->WidthInBytes * copy->Height);
}

static inline uint64_t es_key_copy_3d(const CUDA_MEMCPY3D *copy) {
    return copy == NULL ? es_key_copy(ES_COPY_ANY, 0)
                        : es_key_copy(es_direction(copy->srcMemoryType, copy->dstMemoryType),
                                      copy->WidthInBytes * copy->Height * copy->Depth);
}

static inline uint64_t es_key_copy_3d_peer(const CUDA_MEMCPY3D_PEER *copy) {
    return copy == NULL ? es_key_copy(ES_COPY_PEER, 0)
                        : es_key_copy(ES_COPY_PEER, copy->WidthInBytes * copy->Height * copy->Depth);
}

/* Copies as before CUDA 3.2, with 32 bits for all that is counted. */
static inline uint64_t es_key_copy_2d_v1(const CUDA_MEMCPY2D_v1 *copy) {
    return copy == NULL
               ? es_key_copy(ES_COPY_ANY, 0)
               : es_key_copy(es_direction(copy->srcMemoryType, copy->dstMemoryType), (uint64_t)copy->WidthInBytes * copy->Height);
}

static inline uint64_t es_key_copy_3d_v1(const CUDA_MEMCPY3D_v1 *copy) {
    return copy == NULL ? es_key_copy(ES_COPY_ANY, 0)
                        : es_key_copy(es_direction(copy->srcMemoryType, copy->dstMemoryType),
                                      (uint64_t)copy->WidthInBytes * copy->Height * copy->Depth);
}

/* Several copies in one call: their time goes with their number, too. */
static inline uint64_t es_key_many(enum es_copy_kind kind, uint64_t bytes, size_t count) {
    return es_key_copy(kind, bytes) | es_magnitude(count) << 16;
}

/* Of a long batch the first copies are looked at, so that the launch path stays short; the rest is taken to be alike. */
enum { ES_BATCH_LOOK = 32 };

static inline size_t es_batch_look(size_t count) { return count < ES_BATCH_LOOK ? count : ES_BATCH_LOOK; }

static inline uint64_t es_key_batch(enum es_copy_kind kind, const size_t *sizes, size_t count) {
    const size_t look = sizes == NULL ? 0 : es_batch_look(count);
    uint64_t bytes = 0;

    for (size_t i = 0; i < look; i++)
        bytes += sizes[i];
    return es_key_many(kind, bytes, count);
}

static inline uint64_t es_key_batch_3d(const CUDA_MEMCPY3D_BATCH_OP *copies, size_t count) {
    const size_t look = copies == NULL ? 0 : es_batch_look(count);
    uint64_t elements = 0;

    for (size_t i = 0; i < look; i++)
        elements += copies[i].extent.width * copies[i].extent.height * copies[i].extent.depth;
    return es_key_many(ES_COPY_ANY, elements, count);
}

static inline uint64_t es_key_decompress(const CUmemDecompressParams *parts, size_t count) {
    const size_t look = parts == NULL ? 0 : es_batch_look(count);
    uint64_t bytes = 0;

    for (size_t i = 0; i < look; i++)
        bytes += parts[i].dstNumBytes;
    return es_key_many(ES_DECOMPRESS, bytes, count);
}

static inline uint64_t es_key_instantiation(CUgraph graph) { return (uint64_t)(uintptr_t)graph ^ UINT64_C(0x7C) << 56; }

#endif
