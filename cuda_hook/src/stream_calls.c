#include "batches.h"
#include "gate.h"
#include "life.h"
#include "streams.h"
#include "symbols.h"
#include "wrappers.h"

/* A stream begins to capture, or ends: what was submitted to it so far is marked while that can be done. */
static void mark_before(void)
{
    struct es_slot *slot = es_slot_self;

    if (slot != NULL && !es_life_apart())
        es_batch_close(slot, false);
}

#define END_STREAM(name)                     \
    CUresult es_##name(CUstream hStream)     \
    {                                        \
        ES_REAL_OR_RETURN(name);             \
        mark_before();                       \
        if (!es_life_apart())                \
            es_stream_end(hStream);          \
        return ES_DRIVER(name)(hStream);     \
    }                                        \
    ES_EXPORT(name)

END_STREAM(cuStreamDestroy);
END_STREAM(cuStreamDestroy_v2);

/* Threads ask again before they submit to it: only then is it seen that it captures. */
static void ask_again(void)
{
    if (es_life_apart())
        return;
    es_lock_take(&es_gate.lock);
    es_gate_forget_all();
    es_lock_give(&es_gate.lock);
}

#define BEGIN_CAPTURE(name, parameters, arguments) \
    CUresult es_##name parameters                  \
    {                                              \
        CUresult result;                           \
                                                   \
        ES_REAL_OR_RETURN(name);                   \
        mark_before();                             \
        result = ES_DRIVER(name) arguments;        \
        ask_again();                               \
        return result;                             \
    }                                              \
    ES_EXPORT(name)

#define BEGIN_CAPTURES(name, parameters, arguments) \
    BEGIN_CAPTURE(name, parameters, arguments);     \
    BEGIN_CAPTURE(name##_ptsz, parameters, arguments)

BEGIN_CAPTURES(cuStreamBeginCapture, (CUstream hStream), (hStream));
BEGIN_CAPTURES(cuStreamBeginCapture_v2, (CUstream hStream, CUstreamCaptureMode mode), (hStream, mode));
BEGIN_CAPTURES(cuStreamBeginCaptureToGraph,
               (CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,
                const CUgraphEdgeData *dependencyData, size_t numDependencies, CUstreamCaptureMode mode),
               (hStream, hGraph, dependencies, dependencyData, numDependencies, mode));
BEGIN_CAPTURES(cuStreamBeginCaptureToCig, (CUstream hStream, CUstreamCigCaptureParams *streamCigCaptureParams),
               (hStream, streamCigCaptureParams));
BEGIN_CAPTURES(cuStreamBeginRecaptureToGraph,
               (CUstream hStream, CUstreamCaptureMode mode, CUgraph hGraph, CUgraphRecaptureCallback callbackFunc,
                void *userData),
               (hStream, mode, hGraph, callbackFunc, userData));
