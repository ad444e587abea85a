/* What can be asked about a capture. */
#include "driver/base/driver.h"
#include "driver/capture/capture.h"
#include "driver/capture/nodes.h"
#include "driver/context/context.h"
#include "driver/stream/stream.h"

static CUresult info(CUstream handle, CUstreamCaptureStatus *status, struct capture **capture) {
    struct CUstream_st *stream;
    CUresult result = find_stream(handle, &stream, __func__);
    if (result != CUDA_SUCCESS)
        return result;
    if (!status)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream == &stream->context->legacy && (result = capture_check_legacy(stream)) != CUDA_SUCCESS)
        return result;
    *capture = stream->capture;
    *status = !stream->capture           ? CU_STREAM_CAPTURE_STATUS_NONE
              : stream->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                         : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return CUDA_SUCCESS;
}

static CUresult do_cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
    struct capture *capture;
    return info(stream, status, &capture);
}
EXPORT_PTSZ(cuStreamIsCapturing, (CUstream hStream, CUstreamCaptureStatus *captureStatus), hStream, captureStatus)

static CUresult do_cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id) {
    struct capture *capture;
    CUresult result = info(stream, status, &capture);
    if (result == CUDA_SUCCESS && id && capture)
        *id = capture->id;
    return result;
}
EXPORT_PTSZ(cuStreamGetCaptureInfo, (CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out), hStream,
            captureStatus_out, id_out)

static CUresult do_cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                             const CUgraphNode **dependencies, size_t *count) {
    struct capture *capture;
    CUresult result = info(stream, status, &capture);
    if (result != CUDA_SUCCESS || *status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return result;
    if (id)
        *id = capture->id;
    if (graph)
        *graph = capture->graph;
    /* Work runs in the order of capture: the next node comes after the last. */
    if (dependencies)
        *dependencies = graph_last(capture->graph);
    if (count)
        *count = *graph_last(capture->graph) ? 1 : 0;
    return CUDA_SUCCESS;
}
EXPORT_PTSZ(cuStreamGetCaptureInfo_v2,
            (CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out, CUgraph *graph_out,
             const CUgraphNode **dependencies_out, size_t *numDependencies_out),
            hStream, captureStatus_out, id_out, graph_out, dependencies_out, numDependencies_out)
