/* Graphs, made by hand and looked at. */
#include "driver/base/driver.h"
#include "driver/base/objects.h"
#include "driver/capture/nodes.h"

EXPORT CUresult cuGraphCreate(CUgraph *phGraph, unsigned int flags) {
    CHECK_DRIVER();
    if (!phGraph || flags)
        return CUDA_ERROR_INVALID_VALUE;
    *phGraph = graph_make();
    return *phGraph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuGraphDestroy(CUgraph hGraph) {
    GRAPH(hGraph);
    graph_free(hGraph);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes) {
    GRAPH(hGraph);
    if (!numNodes)
        return CUDA_ERROR_INVALID_VALUE;
    size_t room = *numNodes, count = 0;
    *numNodes = hGraph->count;
    if (!nodes)
        return CUDA_SUCCESS;
    for (CUgraphNode node = hGraph->first; node && count < room; node = node->next)
        nodes[count++] = node;
    *numNodes = count;
    while (count < room)
        nodes[count++] = NULL;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type) {
    CHECK_DRIVER();
    if (!LIVES(hNode, MARK_NODE) || !type)
        return CUDA_ERROR_INVALID_VALUE;
    switch (hNode->work.kind) {
    case SIMGPU_KERNEL: *type = CU_GRAPH_NODE_TYPE_KERNEL; break;
    case SIMGPU_COPY: *type = CU_GRAPH_NODE_TYPE_MEMCPY; break;
    case SIMGPU_SET: *type = CU_GRAPH_NODE_TYPE_MEMSET; break;
    case SIMGPU_HOST:
        *type = hNode->work.call.op.kind == OP_NONE ? CU_GRAPH_NODE_TYPE_HOST : CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
        break;
    case WORK_ALLOCATE: *type = CU_GRAPH_NODE_TYPE_MEM_ALLOC; break;
    case WORK_FREE: *type = CU_GRAPH_NODE_TYPE_MEM_FREE; break;
    default: *type = hNode->child ? CU_GRAPH_NODE_TYPE_GRAPH : CU_GRAPH_NODE_TYPE_EMPTY;
    }
    return CUDA_SUCCESS;
}
