/* A stream's capture, begun and ended. */
#include "driver/base/driver.h"
#include "driver/base/objects.h"
#include "driver/capture/capture.h"
#include "driver/capture/nodes.h"
#include "driver/stream/stream.h"

static CUresult begin(CUstream handle, CUstreamCaptureMode mode, struct CUgraph_st *given) {
    struct CUstream_st *stream;
    CUresult result = find_stream(handle, &stream, __func__);
    return result == CUDA_SUCCESS ? capture_begin(stream, mode, given) : result;
}

static CUresult do_cuStreamBeginCapture(CUstream stream) { return begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, NULL); }
EXPORT_PTSZ(cuStreamBeginCapture, (CUstream hStream), hStream)
static CUresult do_cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) { return begin(stream, mode, NULL); }
EXPORT_PTSZ(cuStreamBeginCapture_v2, (CUstream hStream, CUstreamCaptureMode mode), hStream, mode)

static CUresult do_cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *dependencies,
                                               const CUgraphEdgeData *data, size_t count, CUstreamCaptureMode mode) {
    GRAPH(graph);
    (void)data;
    if (count && !dependencies)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t index = 0; index < count; index++) {
        if (!LIVES(dependencies[index], MARK_NODE))
            return CUDA_ERROR_INVALID_VALUE;
    }
    return begin(stream, mode, graph);
}
EXPORT_PTSZ(cuStreamBeginCaptureToGraph,
            (CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
             size_t numDependencies, CUstreamCaptureMode mode),
            hStream, hGraph, dependencies, dependencyData, numDependencies, mode)

static CUresult do_cuStreamEndCapture(CUstream handle, CUgraph *phGraph) {
    struct CUstream_st *stream;
    CUresult result = find_stream(handle, &stream, __func__);
    if (result != CUDA_SUCCESS)
        return result;
    return phGraph ? capture_end(stream, phGraph) : CUDA_ERROR_INVALID_VALUE;
}
EXPORT_PTSZ(cuStreamEndCapture, (CUstream hStream, CUgraph *phGraph), hStream, phGraph)
