#include <string.h>

#include "contexts.h"
#include "gate.h"
#include "memory.h"
#include "session.h"
#include "symbols.h"
#include "wrappers.h"

/* Where CUDA begins and ends in a process. */

CUresult es_cuInit(unsigned int Flags)
{
    ES_REAL_OR_RETURN(cuInit);
    /* Before the driver opens descriptors of its own. */
    es_session_join();
    return ES_DRIVER(cuInit)(Flags);
}
ES_EXPORT(cuInit);

/* A forked child that makes a context is a client of its own from here on. */
#define MAKE_CONTEXT(name, parameters, arguments) \
    CUresult es_##name parameters                 \
    {                                             \
        ES_REAL_OR_RETURN(name);                  \
        (void)es_session_join_anew();             \
        return ES_DRIVER(name) arguments;         \
    }                                             \
    ES_EXPORT(name)

MAKE_CONTEXT(cuCtxCreate_v2, (CUcontext * pctx, unsigned int flags, CUdevice dev), (pctx, flags, dev));
MAKE_CONTEXT(cuCtxCreate_v3,
             (CUcontext * pctx, CUexecAffinityParam *paramsArray, int numParams, unsigned int flags, CUdevice dev),
             (pctx, paramsArray, numParams, flags, dev));
MAKE_CONTEXT(cuCtxCreate_v4,
             (CUcontext * pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags, CUdevice dev),
             (pctx, ctxCreateParams, flags, dev));

CUresult es_cuCtxDestroy_v2(CUcontext ctx)
{
    CUresult result;

    ES_REAL_OR_RETURN(cuCtxDestroy_v2);
    if (!es_session_forked())
        es_context_end(ctx);
    result = ES_DRIVER(cuCtxDestroy_v2)(ctx);
    if (result == CUDA_SUCCESS)
        es_memory_context_ended(ctx);
    return result;
}
ES_EXPORT(cuCtxDestroy_v2);

/* A primary context ends when it was released as often as it was retained. */
enum { DEVICES = 64 };

static struct {
    CUcontext context;
    uint32_t retained;
} primaries[DEVICES];

CUresult es_cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    CUresult result;

    ES_REAL_OR_RETURN(cuDevicePrimaryCtxRetain);
    if (es_session_join_anew())
        memset(primaries, 0, sizeof(primaries));
    result = ES_DRIVER(cuDevicePrimaryCtxRetain)(pctx, dev);
    if (result == CUDA_SUCCESS && dev >= 0 && dev < DEVICES) {
        es_lock_take(&es_gate.lock);
        primaries[dev].context = *pctx;
        primaries[dev].retained++;
        es_lock_give(&es_gate.lock);
    }
    return result;
}
ES_EXPORT(cuDevicePrimaryCtxRetain);

/* The primary context, if it ends by being released once more or by a reset; else NULL. */
static CUcontext ending(CUdevice dev, bool reset)
{
    CUcontext context = NULL;

    if (dev < 0 || dev >= DEVICES || es_session_forked())
        return NULL;
    es_lock_take(&es_gate.lock);
    if (primaries[dev].retained > 0 && (reset || --primaries[dev].retained == 0)) {
        context = primaries[dev].context;
        primaries[dev].retained = 0;
    }
    es_lock_give(&es_gate.lock);
    return context;
}

#define END_PRIMARY(name, reset)                          \
    CUresult es_##name(CUdevice dev)                      \
    {                                                     \
        CUcontext context;                                \
        CUresult result;                                  \
                                                          \
        ES_REAL_OR_RETURN(name);                          \
        context = ending(dev, reset);                     \
        if (context != NULL)                              \
            es_context_end(context);                      \
        result = ES_DRIVER(name)(dev);                    \
        if (result == CUDA_SUCCESS)                       \
            es_memory_context_ended(context);             \
        return result;                                    \
    }                                                     \
    ES_EXPORT(name)

END_PRIMARY(cuDevicePrimaryCtxRelease, false);
END_PRIMARY(cuDevicePrimaryCtxRelease_v2, false);
END_PRIMARY(cuDevicePrimaryCtxReset, true);
END_PRIMARY(cuDevicePrimaryCtxReset_v2, true);
