/* Nodes of each kind, added to a graph by hand. */
#include <string.h>

#include "driver/base/driver.h"
#include "driver/base/objects.h"
#include "driver/capture/graph_memory.h"
#include "driver/capture/nodes.h"
#include "driver/context/context.h"
#include "driver/execution/launch.h"
#include "driver/module/code.h"
#include "driver/module/function.h"
#include "driver/transfer/transfer.h"

static CUresult add(CUgraphNode *made, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                    const struct node_work *work) {
    GRAPH(graph);
    if (!made || (count && !dependencies))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t index = 0; index < count; index++) {
        if (!LIVES(dependencies[index], MARK_NODE))
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
    CUresult result = find_function(handle, &function, __func__);
    if (result != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    struct launch_shape shape = {{nodeParams->gridDimX, nodeParams->gridDimY, nodeParams->gridDimZ},
                                 {nodeParams->blockDimX, nodeParams->blockDimY, nodeParams->blockDimZ},
                                 nodeParams->sharedMemBytes};
    struct node_work work = {.kind = SIMGPU_KERNEL, .place = launch_place(&shape)};
    const struct simgpu_model *model = &driver.machine.shared->gpus[context->gpu].model;
    result =
        launch_duration(function, &shape, nodeParams->kernelParams, nodeParams->extra, model->multiprocessors, &work.duration_ns);
    if (result == CUDA_SUCCESS)
        result = function_load(function, context);
    return result == CUDA_SUCCESS ? add(phGraphNode, hGraph, dependencies, numDependencies, &work) : result;
}

EXPORT CUresult cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                     size_t numDependencies, const CUDA_MEMCPY3D *copyParams, CUcontext ctx) {
    CHECK_DRIVER();
    struct node_work work;
    CUresult result = check_context(ctx, __func__);
    if (result == CUDA_SUCCESS)
        result = copy_work(copyParams, &work);
    return result == CUDA_SUCCESS ? add(phGraphNode, hGraph, dependencies, numDependencies, &work) : result;
}

EXPORT CUresult cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                     size_t numDependencies, const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx) {
    CHECK_DRIVER();
    CUresult result = check_context(ctx, __func__);
    if (result != CUDA_SUCCESS)
        return result;
    const CUDA_MEMSET_NODE_PARAMS *set = memsetParams;
    if (!set || (set->elementSize != 1 && set->elementSize != 2 && set->elementSize != 4) || set->dst % set->elementSize ||
        set->width > SIZE_MAX / 8)
        return CUDA_ERROR_INVALID_VALUE;
    struct transfer transfer = {
        .box = {.to = (uintptr_t)set->dst,
                .to_side = DEVICE,
                .to_pitch = set->pitch,
                .width = set->width * set->elementSize,
                .height = set->height,
                .depth = 1},
        .element = set->elementSize,
        .value = set->value,
    };
    struct node_work work;
    result = transfer_work(&transfer, &work);
    return result == CUDA_SUCCESS ? add(phGraphNode, hGraph, dependencies, numDependencies, &work) : result;
}

EXPORT CUresult cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                   size_t numDependencies, const CUDA_HOST_NODE_PARAMS *nodeParams) {
    CHECK_DRIVER();
    if (!nodeParams || !nodeParams->fn)
        return CUDA_ERROR_INVALID_VALUE;
    struct node_work work = {.kind = SIMGPU_HOST, .call = {.function = nodeParams->fn, .data = nodeParams->userData}};
    return add(phGraphNode, hGraph, dependencies, numDependencies, &work);
}

EXPORT CUresult cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                         size_t numDependencies, CUgraph childGraph) {
    GRAPH(childGraph);
    struct CUgraph_st *copy = graph_copy(childGraph);
    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = add(phGraphNode, hGraph, dependencies, numDependencies, &(struct node_work){0});
    if (result == CUDA_SUCCESS)
        (*phGraphNode)->child = copy;
    else
        graph_free(copy);
    return result;
}

/* ---- memory ---- */

EXPORT CUresult cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                       size_t numDependencies, CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams) {
    CHECK_DRIVER();
    if (!nodeParams || nodeParams->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        nodeParams->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    /* What a graph allocates cannot be exported. */
    if (nodeParams->poolProps.handleTypes != CU_MEM_HANDLE_TYPE_NONE)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!valid_device(nodeParams->poolProps.location.id))
        return CUDA_ERROR_INVALID_DEVICE;
    struct node_work work = {.kind = WORK_ALLOCATE};
    CUresult result = graph_memory_make(nodeParams->poolProps.location.id, nodeParams->bytesize, &work.memory);
    if (result != CUDA_SUCCESS)
        return result;
    result = add(phGraphNode, hGraph, dependencies, numDependencies, &work);
    if (result == CUDA_SUCCESS)
        nodeParams->dptr = work.memory->address;
    else
        graph_memory_drop(work.memory);
    return result;
}

EXPORT CUresult cuGraphMemAllocNodeGetParams(CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS *params_out) {
    CHECK_DRIVER();
    if (!LIVES(hNode, MARK_NODE) || hNode->work.kind != WORK_ALLOCATE || !params_out)
        return CUDA_ERROR_INVALID_VALUE;
    const struct graph_memory *memory = hNode->work.memory;
    *params_out = (CUDA_MEM_ALLOC_NODE_PARAMS){
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = memory->device}},
        .bytesize = memory->size,
        .dptr = memory->address,
    };
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphAddMemFreeNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                      size_t numDependencies, CUdeviceptr dptr) {
    CHECK_DRIVER();
    struct node_work work;
    CUresult result = graph_free_work(dptr, &work);
    if (result != CUDA_SUCCESS)
        return result;
    result = add(phGraphNode, hGraph, dependencies, numDependencies, &work);
    if (result != CUDA_SUCCESS)
        graph_memory_drop(work.memory);
    return result;
}

EXPORT CUresult cuGraphMemFreeNodeGetParams(CUgraphNode hNode, CUdeviceptr *dptr_out) {
    CHECK_DRIVER();
    if (!LIVES(hNode, MARK_NODE) || hNode->work.kind != WORK_FREE || !dptr_out)
        return CUDA_ERROR_INVALID_VALUE;
    *dptr_out = hNode->work.memory->address;
    return CUDA_SUCCESS;
}
