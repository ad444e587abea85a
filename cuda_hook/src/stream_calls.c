#include "batches.h"
#include "contexts.h"
#include "gate.h"
#include "session.h"
#include "symbols.h"
#include "wrappers.h"

/* A stream begins to capture, or ends: what was submitted to it so far is marked while that can be done. */
static void mark_before(void)
{
    struct es_slot *slot = es_slot_self;

    if (slot != NULL && !es_session_forked() && slot->launches != slot->batch.settled)
        es_batch_close(slot, false);
}

CUresult es_cuStreamDestroy_v2(CUstream hStream)
{
    ES_REAL_OR_RETURN(cuStreamDestroy_v2);
    mark_before();
    if (!es_session_forked())
        es_stream_end(hStream);
    return ES_DRIVER(cuStreamDestroy_v2)(hStream);
}
ES_EXPORT(cuStreamDestroy_v2);

/* Threads ask again before they submit to it: only then is it seen that it captures. */
static void ask_again(void)
{
    if (es_session_forked())
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

BEGIN_CAPTURE(cuStreamBeginCapture, (CUstream hStream), (hStream));
BEGIN_CAPTURE(cuStreamBeginCapture_ptsz, (CUstream hStream), (hStream));
BEGIN_CAPTURE(cuStreamBeginCapture_v2, (CUstream hStream, CUstreamCaptureMode mode), (hStream, mode));
BEGIN_CAPTURE(cuStreamBeginCapture_v2_ptsz, (CUstream hStream, CUstreamCaptureMode mode), (hStream, mode));
