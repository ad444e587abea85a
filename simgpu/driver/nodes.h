/* Graphs, as capture makes them. */
#ifndef SIMGPU_NODES_H
#define SIMGPU_NODES_H

#include "driver/graph.h"

struct CUgraph_st *graph_make(void);
void graph_free(struct CUgraph_st *graph);
/* Appends a node; `added` may be NULL. */
CUresult graph_add(struct CUgraph_st *graph, const struct node_work *work, struct CUgraphNode_st **added);
/* The place that holds the last node, or NULL. */
struct CUgraphNode_st *const *graph_last(const struct CUgraph_st *graph);

#endif
