/* Executable graphs: the work of a graph, as it was when it was instantiated. */
#include <stdlib.h>
#include <string.h>

#include "driver/base/driver.h"
#include "driver/base/objects.h"
#include "driver/base/pace.h"
#include "driver/base/sizes.h"
#include "driver/capture/capture.h"
#include "driver/capture/graph_memory.h"
#include "driver/capture/nodes.h"
#include "driver/context/context.h"
#include "driver/stream/host.h"
#include "driver/stream/queue.h"
#include "driver/stream/stream.h"
#include "driver/transfer/transfer.h"

struct CUgraphExec_st {
    enum mark mark;
    unsigned long long flags;
    bool has_memory;
    struct graph_backing backing;
    size_t count;
    struct node_work work[];
};

#define KNOWN_FLAGS                                                                         \
    (CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD | \
     CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)

static size_t count_work(const struct CUgraph_st *graph) {
    size_t count = 0;
    for (const struct CUgraphNode_st *node = graph->first; node; node = node->next)
        count += node->child ? count_work(node->child) : 1;
    return count;
}

static void take_work(struct CUgraphExec_st *exec, const struct CUgraph_st *graph) {
    for (const struct CUgraphNode_st *node = graph->first; node; node = node->next) {
        if (node->child)
            take_work(exec, node->child);
        else
            exec->work[exec->count++] = node->work;
    }
}

/* The most that is allocated at a time while it runs, of each device. */
static void measure(struct CUgraphExec_st *exec) {
    size_t live[DEVICES] = {0};
    for (size_t index = 0; index < exec->count; index++) {
        const struct graph_memory *memory = exec->work[index].memory;
        if (!memory)
            continue;
        exec->has_memory = true;
        size_t *bytes = &live[memory->device];
        if (exec->work[index].kind == WORK_ALLOCATE)
            *bytes += memory->charged;
        else
            *bytes -= *bytes < memory->charged ? *bytes : memory->charged;
        if (exec->backing.bytes[memory->device] < *bytes)
            exec->backing.bytes[memory->device] = *bytes;
    }
    for (int device = 0; device < DEVICES; device++)
        exec->backing.bytes[device] = round_up(exec->backing.bytes[device], GRANULARITY);
}

/* A graph that allocates has one executable graph at a time. */
static bool is_taken(const struct CUgraphExec_st *exec) {
    for (size_t index = 0; index < exec->count; index++) {
        if (exec->work[index].kind == WORK_ALLOCATE && __atomic_load_n(&exec->work[index].memory->execs, __ATOMIC_RELAXED))
            return true;
    }
    return false;
}

static CUresult instantiate(CUgraphExec *made, CUgraph graph, unsigned long long flags) {
    GRAPH(graph);
    if (!made || (flags & ~(unsigned long long)KNOWN_FLAGS))
        return CUDA_ERROR_INVALID_VALUE;
    struct CUgraphExec_st *exec = calloc(1, sizeof *exec + count_work(graph) * sizeof *exec->work);
    if (!exec)
        return CUDA_ERROR_OUT_OF_MEMORY;
    take_work(exec, graph);
    if (is_taken(exec)) {
        free(exec);
        return CUDA_ERROR_INVALID_VALUE;
    }
    exec->mark = MARK_EXEC;
    exec->flags = flags;
    measure(exec);
    for (size_t index = 0; index < exec->count; index++) {
        if (exec->work[index].memory)
            graph_memory_use(exec->work[index].memory);
        if (exec->work[index].kind == WORK_ALLOCATE)
            __atomic_add_fetch(&exec->work[index].memory->execs, 1, __ATOMIC_RELAXED);
    }
    graph_backing_enter(&exec->backing);
    *made = exec;
    return CUDA_SUCCESS;
}

static void end(struct CUgraphExec_st *exec) {
    exec->mark = 0;
    graph_backing_end(&exec->backing);
    for (size_t index = 0; index < exec->count; index++) {
        if (exec->work[index].kind == WORK_ALLOCATE)
            __atomic_sub_fetch(&exec->work[index].memory->execs, 1, __ATOMIC_RELAXED);
        if (exec->work[index].memory)
            graph_memory_drop(exec->work[index].memory);
    }
    object_free(exec);
}

EXPORT CUresult cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer,
                                   size_t bufferSize) {
    if (phErrorNode)
        *phErrorNode = NULL;
    if (logBuffer && bufferSize)
        *logBuffer = 0;
    return instantiate(phGraphExec, hGraph, 0);
}

EXPORT CUresult cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer,
                                      size_t bufferSize) {
    if (phErrorNode)
        *phErrorNode = NULL;
    if (logBuffer && bufferSize)
        *logBuffer = 0;
    return instantiate(phGraphExec, hGraph, 0);
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags) {
    return instantiate(phGraphExec, hGraph, flags);
}

/* Its memory is there from here on. */
static CUresult upload(CUgraphExec exec, CUstream handle) {
    struct CUstream_st *stream;
    CUresult result = find_stream(handle, &stream, __func__);
    if (result != CUDA_SUCCESS)
        return result;
    if (!LIVES(exec, MARK_EXEC))
        return CUDA_ERROR_INVALID_VALUE;
    return graph_backing_take(&exec->backing);
}

static CUresult instantiate_with(CUgraphExec *made, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params,
                                 CUstream default_stream) {
    CHECK_DRIVER();
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    params->hErrNode_out = NULL;
    CUresult result = instantiate(made, graph, params->flags);
    if (result == CUDA_SUCCESS && (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)) {
        result = upload(*made, params->hUploadStream ? params->hUploadStream : default_stream);
        if (result != CUDA_SUCCESS)
            end(*made);
    }
    params->result_out = result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
    return result;
}
EXPORT CUresult cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
                                             CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams) {
    return instantiate_with(phGraphExec, hGraph, instantiateParams, CU_STREAM_LEGACY);
}
EXPORT CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *phGraphExec, CUgraph hGraph,
                                                  CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams) {
    return instantiate_with(phGraphExec, hGraph, instantiateParams, CU_STREAM_PER_THREAD);
}

EXPORT CUresult cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags) {
    CHECK_DRIVER();
    if (!LIVES(hGraphExec, MARK_EXEC) || !flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = hGraphExec->flags;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec hGraphExec) {
    CHECK_DRIVER();
    if (!LIVES(hGraphExec, MARK_EXEC))
        return CUDA_ERROR_INVALID_VALUE;
    end(hGraphExec);
    return CUDA_SUCCESS;
}

static CUresult do_cuGraphUpload(CUgraphExec exec, CUstream handle) { return upload(exec, handle); }
EXPORT_PTSZ(cuGraphUpload, (CUgraphExec hGraphExec, CUstream hStream), hGraphExec, hStream)

/* ---- launches ---- */

/* What the last run left allocated must have been freed, or is freed now where that was asked for. */
static CUresult check_freed(struct CUgraphExec_st *exec) {
    for (size_t index = 0; index < exec->count; index++) {
        struct graph_memory *memory = exec->work[index].memory;
        if (exec->work[index].kind != WORK_ALLOCATE || !__atomic_load_n(&memory->live, __ATOMIC_RELAXED))
            continue;
        if (!(exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH))
            return CUDA_ERROR_INVALID_VALUE;
        graph_memory_free(memory);
    }
    return CUDA_SUCCESS;
}

/* An error that only the run shows: from here on it is the context's. */
static CUresult fail(const struct CUstream_st *stream, CUresult error) {
    store_u32(&stream->context->shared->error, (uint32_t)error);
    return CUDA_SUCCESS;
}

static CUresult run(struct CUstream_st *stream, const struct node_work *work) {
    CUresult moved;
    switch (work->kind) {
    case 0: return CUDA_SUCCESS;
    case WORK_ALLOCATE: return graph_memory_allocate(work->memory);
    case WORK_FREE: return graph_memory_free(work->memory);
    case SIMGPU_HOST: return host_push(stream, &work->call);
    case SIMGPU_COPY:
    case SIMGPU_SET:
        moved = transfer_move(&work->transfer);
        if (moved != CUDA_SUCCESS)
            return fail(stream, moved);
        break;
    default: break;
    }
    return queue_push(stream, work->kind, work->duration_ns, work->place, NULL);
}

/* Launched into a capture it becomes a part of that graph; what allocates cannot. */
static CUresult capture_exec(struct CUstream_st *stream, const struct CUgraphExec_st *exec) {
    CUresult result = exec->has_memory ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
    for (size_t index = 0; result == CUDA_SUCCESS && index < exec->count; index++) {
        if (exec->work[index].kind)
            result = capture_work(stream, &exec->work[index]);
    }
    return result;
}

static CUresult do_cuGraphLaunch(CUgraphExec exec, CUstream handle) {
    struct CUstream_st *stream;
    CUresult result = find_stream(handle, &stream, __func__);
    if (result != CUDA_SUCCESS)
        return result;
    if (!LIVES(exec, MARK_EXEC))
        return CUDA_ERROR_INVALID_VALUE;
    result = capture_check_legacy(stream);
    if (result == CUDA_SUCCESS && stream->capture)
        return capture_exec(stream, exec);
    if (result == CUDA_SUCCESS)
        result = queue_error(stream->context);
    if (result == CUDA_SUCCESS && exec->has_memory)
        result = check_freed(exec);
    if (result == CUDA_SUCCESS)
        result = graph_backing_take(&exec->backing);
    if (result == CUDA_SUCCESS)
        pace_spend(pace_now()->graph_launch_ns + pace_now()->graph_node_ns * exec->count);
    for (size_t index = 0; result == CUDA_SUCCESS && index < exec->count; index++)
        result = run(stream, &exec->work[index]);
    graph_backing_ran(&exec->backing, stream->context);
    return result;
}
EXPORT_PTSZ(cuGraphLaunch, (CUgraphExec hGraphExec, CUstream hStream), hGraphExec, hStream)
