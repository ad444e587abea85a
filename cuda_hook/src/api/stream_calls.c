#include "api/wrappers.h"
#include "backlog/backlog.h"
#include "backlog/submitted.h"
#include "base/life.h"
#include "base/state.h"
#include "driver/streams.h"
#include "driver/symbols.h"
#include "link/link.h"
#include "markers/batches.h"
#include "pass/grant.h"
#include "pass/places.h"
#include "threads/slots.h"

/* A stream begins to capture, or ends: what was submitted to it so far is marked while that can be done. */
static void mark_before(void) {
    struct es_slot *slot = es_slot_self;

    if (slot != NULL && !es_life_apart())
        es_batch_close(slot, false);
}

/* A function of the host was queued in a stream. What came before it has its end marked by then, and what comes after it its
 * begin: how long it takes, and whether it waits for another launch, says nothing of the device's time. */
static void held_up(int number) {
    int index;

    if (number < 0)
        return;
    es_lock_take(&es_state_lock);
    index = es_stream_index(number);
    if (index >= 0)
        es_backlog.held_streams |= UINT64_C(1) << index;
    es_backlog.waits++;
    es_lock_give(&es_state_lock);
}

/* The number of a stream that work was submitted to under the manager, as far as one knows. */
static int number_of(CUstream stream) {
    return es_life_apart() || es_mode_now() != ES_JOINED ? ES_STREAM_NONE : es_place_of(stream);
}

#define HOST_FUNCTION(name, stream, parameters, arguments) \
    CUresult es_##name parameters {                        \
        CUresult result;                                   \
        int number;                                        \
                                                           \
        ES_REAL_OR_RETURN(name);                           \
        number = number_of(stream);                        \
        if (number >= 0)                                   \
            mark_before();                                 \
        result = ES_DRIVER(name) arguments;                \
        held_up(number);                                   \
        return result;                                     \
    }                                                      \
    ES_EXPORT(name)

#define HOST_FUNCTIONS(name, parameters, arguments)      \
    HOST_FUNCTION(name, hStream, parameters, arguments); \
    HOST_FUNCTION(name##_ptsz, hStream == NULL ? CU_STREAM_PER_THREAD : hStream, parameters, arguments)

HOST_FUNCTIONS(cuLaunchHostFunc, (CUstream hStream, CUhostFn fn, void *userData), (hStream, fn, userData));
HOST_FUNCTIONS(cuLaunchHostFunc_v2, (CUstream hStream, CUhostFn fn, void *userData, unsigned int syncMode),
               (hStream, fn, userData, syncMode));
HOST_FUNCTIONS(cuStreamAddCallback, (CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags),
               (hStream, callback, userData, flags));

/* What other threads submitted to a stream that is about to end is marked while that can be done. */
static void mark_others(CUstream stream) {
    const uint64_t streams = es_streams_like(stream);
    bool beside;

    es_lock_take(&es_state_lock);
    beside = es_submitted_beside(streams);
    es_lock_give(&es_state_lock);
    if (!beside || !es_grant_pause())
        return;
    (void)es_batches_close_all();
    es_grant_resume();
}

#define END_STREAM(name)                   \
    CUresult es_##name(CUstream hStream) { \
        ES_REAL_OR_RETURN(name);           \
        mark_before();                     \
        if (!es_life_apart()) {            \
            mark_others(hStream);          \
            es_stream_end(hStream);        \
        }                                  \
        return ES_DRIVER(name)(hStream);   \
    }                                      \
    ES_EXPORT(name)

END_STREAM(cuStreamDestroy);
END_STREAM(cuStreamDestroy_v2);

#define BEGIN_CAPTURE(name, parameters, arguments)                                               \
    CUresult es_##name parameters {                                                              \
        const bool apart = es_life_apart();                                                      \
        CUresult result;                                                                         \
                                                                                                 \
        ES_REAL_OR_RETURN(name);                                                                 \
        mark_before();                                                                           \
        if (!apart)                                                                              \
            es_capture_begin();                                                                  \
        result = ES_DRIVER(name) arguments;                                                      \
        /* Threads ask again before they submit to it: only then is it seen that it captures. */ \
        if (!apart)                                                                              \
            es_capture_begun(result == CUDA_SUCCESS);                                            \
        return result;                                                                           \
    }                                                                                            \
    ES_EXPORT(name)

#define BEGIN_CAPTURES(name, parameters, arguments) \
    BEGIN_CAPTURE(name, parameters, arguments);     \
    BEGIN_CAPTURE(name##_ptsz, parameters, arguments)

BEGIN_CAPTURES(cuStreamBeginCapture, (CUstream hStream), (hStream));
BEGIN_CAPTURES(cuStreamBeginCapture_v2, (CUstream hStream, CUstreamCaptureMode mode), (hStream, mode));
BEGIN_CAPTURES(cuStreamBeginCaptureToGraph,
               (CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
                size_t numDependencies, CUstreamCaptureMode mode),
               (hStream, hGraph, dependencies, dependencyData, numDependencies, mode));
BEGIN_CAPTURES(cuStreamBeginCaptureToCig, (CUstream hStream, CUstreamCigCaptureParams *streamCigCaptureParams),
               (hStream, streamCigCaptureParams));
BEGIN_CAPTURES(cuStreamBeginRecaptureToGraph,
               (CUstream hStream, CUstreamCaptureMode mode, CUgraph hGraph, CUgraphRecaptureCallback callbackFunc,
                void *userData),
               (hStream, mode, hGraph, callbackFunc, userData));

/* Whatever it answers, a capture has ended where the stream captured before and does no more. */
#define END_CAPTURE(name, stream)                                   \
    CUresult es_##name(CUstream hStream, CUgraph *phGraph) {        \
        const bool counts = !es_life_apart() && es_captures_last(); \
        bool captured;                                              \
        CUresult result;                                            \
                                                                    \
        ES_REAL_OR_RETURN(name);                                    \
        captured = counts && es_stream_capturing(stream);           \
        result = ES_DRIVER(name)(hStream, phGraph);                 \
        if (captured && !es_stream_capturing(stream))               \
            es_capture_ended();                                     \
        return result;                                              \
    }                                                               \
    ES_EXPORT(name)

END_CAPTURE(cuStreamEndCapture, hStream);
END_CAPTURE(cuStreamEndCapture_ptsz, hStream == NULL ? CU_STREAM_PER_THREAD : hStream);

/* A stream that waits for an event of a capture captures from then on. It is never held up: only what the hook itself asks of
 * streams is waited for, and only while something captures. */
#define WAIT_EVENT(name)                                                       \
    CUresult es_##name(CUstream hStream, CUevent hEvent, unsigned int Flags) { \
        CUresult result;                                                       \
                                                                               \
        ES_REAL_OR_RETURN(name);                                               \
        if (!es_captures_last() || es_life_apart())                            \
            return ES_DRIVER(name)(hStream, hEvent, Flags);                    \
        mark_before();                                                         \
        es_capture_begin();                                                    \
        result = ES_DRIVER(name)(hStream, hEvent, Flags);                      \
        es_capture_begun(false);                                               \
        return result;                                                         \
    }                                                                          \
    ES_EXPORT(name)

WAIT_EVENT(cuStreamWaitEvent);
WAIT_EVENT(cuStreamWaitEvent_ptsz);
