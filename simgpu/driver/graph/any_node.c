/* Nodes of whatever kind, by one call: what the parameters say goes to the call for that kind. */
#include <string.h>

#include "driver/base/driver.h"
#include "driver/context/context.h"

/* What the parameters of a copy and of a set hold, beyond what the calls for them take. */
struct copy_params {
    int flags;
    int reserved;
    CUcontext context;
    CUDA_MEMCPY3D copy;
};
struct set_params {
    CUDA_MEMSET_NODE_PARAMS set;
    CUcontext context;
};
union params {
    CUDA_KERNEL_NODE_PARAMS_v2 kernel;
    struct copy_params copy;
    struct set_params set;
    CUDA_HOST_NODE_PARAMS host;
    CUgraph child;
    CUDA_MEM_ALLOC_NODE_PARAMS allocation;
    CUdeviceptr freed;
};
_Static_assert(sizeof(union params) <= sizeof((CUgraphNodeParams){0}.reserved1), "what a node's parameters hold");

/* Where no context is named it is the calling thread's. */
static CUcontext named_or_current(CUcontext named) { return named ? named : context_if_any(); }

static CUresult add(CUgraphNode *made, CUgraph graph, const CUgraphNode *dependencies, size_t count, CUgraphNodeParams *given) {
    CHECK_DRIVER();
    union params params;
    if (!given || given->reserved2)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&params, given->reserved1, sizeof params);
    switch (given->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return cuGraphAddKernelNode_v2(made, graph, dependencies, count, &params.kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return cuGraphAddMemcpyNode(made, graph, dependencies, count, &params.copy.copy, named_or_current(params.copy.context));
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return cuGraphAddMemsetNode(made, graph, dependencies, count, &params.set.set, named_or_current(params.set.context));
    case CU_GRAPH_NODE_TYPE_HOST: return cuGraphAddHostNode(made, graph, dependencies, count, &params.host);
    case CU_GRAPH_NODE_TYPE_GRAPH: return cuGraphAddChildGraphNode(made, graph, dependencies, count, params.child);
    case CU_GRAPH_NODE_TYPE_EMPTY: return cuGraphAddEmptyNode(made, graph, dependencies, count);
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return cuGraphAddMemFreeNode(made, graph, dependencies, count, params.freed);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
        CUresult result = cuGraphAddMemAllocNode(made, graph, dependencies, count, &params.allocation);
        memcpy(given->reserved1, &params, sizeof params);
        return result;
    }
    default: return CUDA_ERROR_NOT_SUPPORTED;
    }
}

EXPORT CUresult cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
                               CUgraphNodeParams *nodeParams) {
    return add(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
}
EXPORT CUresult cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                  const CUgraphEdgeData *dependencyData, size_t numDependencies, CUgraphNodeParams *nodeParams) {
    (void)dependencyData;
    return add(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
}
EXPORT CUresult cuGraphAddNode_v3(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                  const CUgraphEdgeData *dependencyData, size_t numDependencies, CUgraphNodeParams *nodeParams) {
    (void)dependencyData;
    return add(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
}
