#include "api/wrappers.h"
#include "driver/streams.h"
#include "driver/symbols.h"
#include "memory/account.h"
#include "memory/amounts.h"
#include "memory/devices.h"
#include "memory/graph_memory.h"
#include "memory/growth.h"
#include "memory/pool_uses.h"
#include "memory/pools.h"

/* Pools, and what is allocated from them in the order of streams. */

/* In a capture an allocation becomes a node of the graph: it takes memory when that is launched. */
static bool captures(CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    if (!es_captures_last() || ES_DRIVER(cuStreamIsCapturing) == NULL ||
        ES_DRIVER(cuStreamIsCapturing)(stream, &status) != CUDA_SUCCESS || status == CU_STREAM_CAPTURE_STATUS_NONE)
        return false;
    es_graph_memory_expect();
    return true;
}

/* The device of a stream; a default one is the current context's. Every allocation asks: it does so with few calls. */
static bool device_of(CUstream stream, CUdevice *device) {
    CUcontext context = NULL, current = NULL;
    CUresult result;

    if (ES_DRIVER(cuCtxGetCurrent)(&current) != CUDA_SUCCESS)
        return false;
    if (current != NULL && es_device_only(device))
        return true;
    if (stream != NULL && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD && ES_DRIVER(cuStreamGetCtx) != NULL &&
        ES_DRIVER(cuStreamGetCtx)(stream, &context) != CUDA_SUCCESS)
        return false;
    if (context == NULL || context == current)
        return current != NULL && ES_DRIVER(cuCtxGetDevice)(device) == CUDA_SUCCESS;
    if (ES_DRIVER(cuCtxPushCurrent_v2)(context) != CUDA_SUCCESS)
        return false;
    result = ES_DRIVER(cuCtxGetDevice)(device);
    (void)ES_DRIVER(cuCtxPopCurrent_v2)(&context);
    return result == CUDA_SUCCESS;
}

/* The current pool of a stream's device, which is noted. */
static CUmemoryPool pool_of(CUstream stream, CUdevice *device) {
    CUmemoryPool pool = NULL;

    if (!device_of(stream, device) || ES_DRIVER(cuDeviceGetMemPool) == NULL)
        return NULL;
    es_pools_use();
    if (ES_DRIVER(cuDeviceGetMemPool)(&pool, *device) == CUDA_SUCCESS)
        es_pools_note(pool, *device);
    else
        pool = NULL;
    es_pools_used();
    return pool;
}

/* What is asked of a pool that is not known (one of the host's memory, or of another process) is none of ours. */
#define ALLOCATE(name, parameters, arguments, where, from, free)                                                         \
    CUresult es_##name parameters {                                                                                      \
        struct es_claim claim;                                                                                           \
        CUmemoryPool source = NULL;                                                                                      \
        CUdevice device = 0;                                                                                             \
        CUresult result;                                                                                                 \
                                                                                                                         \
        ES_REAL_OR_RETURN(name);                                                                                         \
        if (dptr != NULL && bytesize != 0 && es_amounts_counts() && !captures(where))                                    \
            source = from;                                                                                               \
        if (source == NULL)                                                                                              \
            return ES_DRIVER(name) arguments;                                                                            \
        if (!es_growth_claim(&claim, source, device, bytesize))                                                          \
            return CUDA_ERROR_OUT_OF_MEMORY;                                                                             \
        result = ES_DRIVER(name) arguments;                                                                              \
        if (es_growth_allocated(&claim, source, result == CUDA_SUCCESS ? *dptr : 0, bytesize) || result != CUDA_SUCCESS) \
            return result;                                                                                               \
        (void)es_##free(*dptr, hStream);                                                                                 \
        return CUDA_ERROR_OUT_OF_MEMORY;                                                                                 \
    }                                                                                                                    \
    ES_EXPORT(name)

#define OWN(stream) ((stream) == NULL ? CU_STREAM_PER_THREAD : (stream))

ALLOCATE(cuMemAllocAsync, (CUdeviceptr * dptr, size_t bytesize, CUstream hStream), (dptr, bytesize, hStream), hStream,
         pool_of(hStream, &device), cuMemFreeAsync);
ALLOCATE(cuMemAllocAsync_ptsz, (CUdeviceptr * dptr, size_t bytesize, CUstream hStream), (dptr, bytesize, hStream), OWN(hStream),
         pool_of(OWN(hStream), &device), cuMemFreeAsync_ptsz);
ALLOCATE(cuMemAllocFromPoolAsync, (CUdeviceptr * dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream),
         (dptr, bytesize, pool, hStream), hStream, es_pools_known(pool, &device), cuMemFreeAsync);
ALLOCATE(cuMemAllocFromPoolAsync_ptsz, (CUdeviceptr * dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream),
         (dptr, bytesize, pool, hStream), OWN(hStream), es_pools_known(pool, &device), cuMemFreeAsync_ptsz);

/* A program that allocates from a default pool by name, without having allocated in a stream before, has asked for it
 * here. */
#define GET_POOL(name)                                         \
    CUresult es_##name(CUmemoryPool *pool_out, CUdevice dev) { \
        CUresult result;                                       \
                                                               \
        ES_REAL_OR_RETURN(name);                               \
        if (!es_amounts_counts())                              \
            return ES_DRIVER(name)(pool_out, dev);             \
        es_pools_use();                                        \
        result = ES_DRIVER(name)(pool_out, dev);               \
        if (result == CUDA_SUCCESS && pool_out != NULL)        \
            es_pools_note(*pool_out, dev);                     \
        es_pools_used();                                       \
        return result;                                         \
    }                                                          \
    ES_EXPORT(name)

GET_POOL(cuDeviceGetDefaultMemPool);
GET_POOL(cuDeviceGetMemPool);

static bool on_device(const CUmemLocation *location) { return location != NULL && location->type == CU_MEM_LOCATION_TYPE_DEVICE; }

#define GET_POOL_AT(name)                                                                       \
    CUresult es_##name(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type) { \
        CUresult result;                                                                        \
                                                                                                \
        ES_REAL_OR_RETURN(name);                                                                \
        if (!es_amounts_counts())                                                               \
            return ES_DRIVER(name)(pool, location, type);                                       \
        es_pools_use();                                                                         \
        result = ES_DRIVER(name)(pool, location, type);                                         \
        if (result == CUDA_SUCCESS && pool != NULL && on_device(location))                      \
            es_pools_note(*pool, location->id);                                                 \
        es_pools_used();                                                                        \
        return result;                                                                          \
    }                                                                                           \
    ES_EXPORT(name)

GET_POOL_AT(cuMemGetDefaultMemPool);
GET_POOL_AT(cuMemGetMemPool);

CUresult es_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps) {
    CUresult result;
    bool ours;

    ES_REAL_OR_RETURN(cuMemPoolCreate);
    if (!es_amounts_counts())
        return ES_DRIVER(cuMemPoolCreate)(pool, poolProps);
    es_pools_use();
    result = ES_DRIVER(cuMemPoolCreate)(pool, poolProps);
    ours = result == CUDA_SUCCESS && on_device(&poolProps->location);
    if (ours)
        es_pools_note(*pool, poolProps->location.id);
    es_pools_used();
    if (ours)
        es_pools_look(poolProps->location.id);
    return result;
}
ES_EXPORT(cuMemPoolCreate);

CUresult es_cuMemPoolDestroy(CUmemoryPool pool) {
    CUresult result;

    ES_REAL_OR_RETURN(cuMemPoolDestroy);
    if (!es_amounts_counts())
        return ES_DRIVER(cuMemPoolDestroy)(pool);
    es_pools_stop();
    result = ES_DRIVER(cuMemPoolDestroy)(pool);
    if (result == CUDA_SUCCESS)
        es_pools_ended(pool);
    es_pools_go_on();
    return result;
}
ES_EXPORT(cuMemPoolDestroy);

CUresult es_cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep) {
    CUdevice device;
    CUresult result;

    ES_REAL_OR_RETURN(cuMemPoolTrimTo);
    result = ES_DRIVER(cuMemPoolTrimTo)(pool, minBytesToKeep);
    if (result == CUDA_SUCCESS && es_amounts_counts() && es_pools_known(pool, &device) != NULL)
        es_pools_look(device);
    return result;
}
ES_EXPORT(cuMemPoolTrimTo);

/* ---- memory nodes of graphs ---- */

CUresult es_cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                   size_t numDependencies, CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams) {
    ES_REAL_OR_RETURN(cuGraphAddMemAllocNode);
    es_graph_memory_expect();
    return ES_DRIVER(cuGraphAddMemAllocNode)(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
}
ES_EXPORT(cuGraphAddMemAllocNode);

/* The call for nodes of all types. */
#define ADD_NODE(name, parameters, arguments)                                       \
    CUresult es_##name parameters {                                                 \
        ES_REAL_OR_RETURN(name);                                                    \
        if (nodeParams != NULL && nodeParams->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) \
            es_graph_memory_expect();                                               \
        return ES_DRIVER(name) arguments;                                           \
    }                                                                               \
    ES_EXPORT(name)

ADD_NODE(cuGraphAddNode,
         (CUgraphNode * phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
          CUgraphNodeParams *nodeParams),
         (phGraphNode, hGraph, dependencies, numDependencies, nodeParams));
ADD_NODE(cuGraphAddNode_v2,
         (CUgraphNode * phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
          size_t numDependencies, CUgraphNodeParams *nodeParams),
         (phGraphNode, hGraph, dependencies, dependencyData, numDependencies, nodeParams));
ADD_NODE(cuGraphAddNode_v3,
         (CUgraphNode * phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
          size_t numDependencies, CUgraphNodeParams *nodeParams),
         (phGraphNode, hGraph, dependencies, dependencyData, numDependencies, nodeParams));

CUresult es_cuDeviceGraphMemTrim(CUdevice device) {
    CUresult result;

    ES_REAL_OR_RETURN(cuDeviceGraphMemTrim);
    result = ES_DRIVER(cuDeviceGraphMemTrim)(device);
    if (result == CUDA_SUCCESS && es_amounts_counts()) {
        es_graph_memory_trimmed();
        es_pools_look(device);
    }
    return result;
}
ES_EXPORT(cuDeviceGraphMemTrim);

CUresult es_cuGraphExecDestroy(CUgraphExec hGraphExec) {
    ES_REAL_OR_RETURN(cuGraphExecDestroy);
    if (es_amounts_counts())
        es_graph_memory_ended(hGraphExec);
    return ES_DRIVER(cuGraphExecDestroy)(hGraphExec);
}
ES_EXPORT(cuGraphExecDestroy);
