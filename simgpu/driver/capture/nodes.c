/* A graph: a list of work that runs in the order in which it was added, which every order of dependencies allows. */
#include "driver/capture/nodes.h"
#include "driver/base/objects.h"
#include "driver/capture/graph_memory.h"

#include <stdlib.h>

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
