/* Graphs of kernels, copies, sets and host functions: a list of work that runs in the order in which it was added, which
 * every order of dependencies allows. */
#include <stdlib.h>

#include "driver/base/driver.h"
#include "driver/base/objects.h"
#include "driver/graph/graph_memory.h"
#include "driver/graph/nodes.h"

struct CUgraph_st *graph_make(void) {
    struct CUgraph_st *graph = calloc(1, sizeof *graph);
    if (graph)
        graph->mark = MARK_GRAPH;
    return graph;
}

void graph_free(struct CUgraph_st *graph) {
    while (graph->first) {
        struct CUgraphNode_st *node = graph->first;
        graph->first = node->next;
        if (node->work.memory)
            graph_memory_drop(node->work.memory);
        if (node->child)
            graph_free(node->child);
        node->mark = 0;
        object_free(node);
    }
    graph->mark = 0;
    object_free(graph);
}

CUresult graph_add(struct CUgraph_st *graph, const struct node_work *work, struct CUgraphNode_st **added) {
    struct CUgraphNode_st *node = calloc(1, sizeof *node);
    if (!node)
        return CUDA_ERROR_OUT_OF_MEMORY;
    node->mark = MARK_NODE;
    node->work = *work;
    if (graph->last)
        graph->last->next = node;
    else
        graph->first = node;
    graph->last = node;
    graph->count++;
    if (added)
        *added = node;
    return CUDA_SUCCESS;
}

struct CUgraphNode_st *const *graph_last(const struct CUgraph_st *graph) { return &graph->last; }

struct CUgraph_st *graph_copy(const struct CUgraph_st *graph) {
    struct CUgraph_st *copy = graph_make();
    for (const struct CUgraphNode_st *node = graph->first; copy && node; node = node->next) {
        struct CUgraphNode_st *added;
        if (node->work.memory)
            graph_memory_use(node->work.memory);
        CUresult result = graph_add(copy, &node->work, &added);
        if (result == CUDA_SUCCESS)
            added->child = node->child ? graph_copy(node->child) : NULL;
        if (result != CUDA_SUCCESS || (node->child && !added->child)) {
            graph_free(copy);
            return NULL;
        }
    }
    return copy;
}

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
