/* Graphs of kernels, copies, sets and host functions: a list of work that runs in the order in which it was added, which
 * every order of dependencies allows. */
#include <stdlib.h>

#include "driver/module.h"
#include "driver/nodes.h"

struct CUgraphNode_st {
    enum mark mark;
    struct node_work work;
    struct CUgraphNode_st *next;
};

struct CUgraph_st {
    enum mark mark;
    size_t count;
    struct CUgraphNode_st *first, *last;
};

struct CUgraphExec_st {
    enum mark mark;
    size_t count;
    struct node_work work[];
};

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
        free(node);
    }
    graph->mark = 0;
    free(graph);
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

#define GRAPH(graph)                                \
    do {                                            \
        CHECK_DRIVER();                             \
        if (!(graph) || (graph)->mark != MARK_GRAPH) \
            return CUDA_ERROR_INVALID_VALUE;        \
    } while (0)

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

static CUresult add(CUgraphNode *made, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                    const struct node_work *work) {
    GRAPH(graph);
    if (!made || (count && !dependencies))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t index = 0; index < count; index++) {
        if (!dependencies[index] || dependencies[index]->mark != MARK_NODE)
            return CUDA_ERROR_INVALID_VALUE;
    }
    return graph_add(graph, work, made);
}

EXPORT CUresult cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                    size_t numDependencies) {
    return add(phGraphNode, hGraph, dependencies, numDependencies, &(struct node_work){0});
}

EXPORT CUresult cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                        size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS_v2 *nodeParams) {
    CURRENT(context);
    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    struct CUfunc_st *function;
    CUfunction handle = nodeParams->func ? nodeParams->func : (CUfunction)nodeParams->kern;
    CUresult result = find_function(handle, &function);
    if (result != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    struct launch_shape shape = {{nodeParams->gridDimX, nodeParams->gridDimY, nodeParams->gridDimZ},
                                 {nodeParams->blockDimX, nodeParams->blockDimY, nodeParams->blockDimZ},
                                 nodeParams->sharedMemBytes};
    struct node_work work = {.kind = SIMGPU_KERNEL};
    const struct simgpu_model *model = &driver.machine.shared->gpus[context->gpu].model;
    result = launch_duration(function, &shape, nodeParams->kernelParams, nodeParams->extra, model->multiprocessors,
                             &work.duration_ns);
    return result == CUDA_SUCCESS ? add(phGraphNode, hGraph, dependencies, numDependencies, &work) : result;
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
    if (!hNode || hNode->mark != MARK_NODE || !type)
        return CUDA_ERROR_INVALID_VALUE;
    switch (hNode->work.kind) {
    case SIMGPU_KERNEL: *type = CU_GRAPH_NODE_TYPE_KERNEL; break;
    case SIMGPU_COPY: *type = CU_GRAPH_NODE_TYPE_MEMCPY; break;
    case SIMGPU_SET: *type = CU_GRAPH_NODE_TYPE_MEMSET; break;
    case SIMGPU_HOST: *type = CU_GRAPH_NODE_TYPE_HOST; break;
    default: *type = CU_GRAPH_NODE_TYPE_EMPTY;
    }
    return CUDA_SUCCESS;
}

/* ---- executable graphs ---- */

/* What cuGraphInstantiateWithFlags knows: free memory nodes at launch, upload, launch from the device, node priority. */
#define KNOWN_FLAGS 0xfu

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags) {
    GRAPH(hGraph);
    if (!phGraphExec || (flags & ~(unsigned long long)KNOWN_FLAGS))
        return CUDA_ERROR_INVALID_VALUE;
    struct CUgraphExec_st *exec = calloc(1, sizeof *exec + hGraph->count * sizeof *exec->work);
    if (!exec)
        return CUDA_ERROR_OUT_OF_MEMORY;
    exec->mark = MARK_EXEC;
    for (CUgraphNode node = hGraph->first; node; node = node->next)
        exec->work[exec->count++] = node->work;
    *phGraphExec = exec;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec hGraphExec) {
    CHECK_DRIVER();
    if (!hGraphExec || hGraphExec->mark != MARK_EXEC)
        return CUDA_ERROR_INVALID_VALUE;
    hGraphExec->mark = 0;
    free(hGraphExec);
    return CUDA_SUCCESS;
}

static CUresult find_exec(CUgraphExec exec, CUstream handle, struct CUstream_st **stream) {
    CUresult result = find_stream(handle, stream);
    if (result != CUDA_SUCCESS)
        return result;
    return exec && exec->mark == MARK_EXEC ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult do_cuGraphUpload(CUgraphExec exec, CUstream handle) {
    struct CUstream_st *stream;
    return find_exec(exec, handle, &stream);
}
EXPORT_PTSZ(cuGraphUpload, (CUgraphExec hGraphExec, CUstream hStream), hGraphExec, hStream)

static CUresult do_cuGraphLaunch(CUgraphExec exec, CUstream handle) {
    struct CUstream_st *stream;
    CUresult result = find_exec(exec, handle, &stream);
    if (result == CUDA_SUCCESS)
        result = capture_check_legacy(stream);
    for (size_t index = 0; result == CUDA_SUCCESS && index < exec->count; index++) {
        const struct node_work *work = &exec->work[index];
        if (!work->kind)
            continue;
        if (stream->capture)
            result = capture_work(stream, work);
        else if (work->kind == SIMGPU_HOST)
            result = host_push(stream, &work->call);
        else
            result = queue_push(stream, work->kind, work->duration_ns, NULL);
    }
    return result;
}
EXPORT_PTSZ(cuGraphLaunch, (CUgraphExec hGraphExec, CUstream hStream), hGraphExec, hStream)
