/* Graphs and their nodes, as captures make them and runs take them. */
#ifndef SIMGPU_NODES_H
#define SIMGPU_NODES_H

#include "driver/base/driver.h"
#include "driver/base/objects.h"
#include "driver/capture/work.h"

struct CUgraphNode_st {
    enum mark mark;
    struct node_work work;
    struct CUgraph_st *child; /* a copy of the graph that the node runs; NULL: it runs none */
    struct CUgraphNode_st *next;
};

struct CUgraph_st {
    enum mark mark;
    size_t count;
    struct CUgraphNode_st *first, *last;
};

/* Returns when the handle is no graph's. */
#define GRAPH(graph)                         \
    do {                                     \
        CHECK_DRIVER();                      \
        if (!LIVES(graph, MARK_GRAPH))       \
            return CUDA_ERROR_INVALID_VALUE; \
    } while (0)

struct CUgraph_st *graph_make(void);
void graph_free(struct CUgraph_st *graph);
/* Appends a node; `added` may be NULL. What it allocates is the graph's to drop. */
CUresult graph_add(struct CUgraph_st *graph, const struct node_work *work, struct CUgraphNode_st **added);
/* The place that holds the last node, or NULL. */
struct CUgraphNode_st *const *graph_last(const struct CUgraph_st *graph);
/* A graph of the same nodes; NULL: no memory. */
struct CUgraph_st *graph_copy(const struct CUgraph_st *graph);

#endif
