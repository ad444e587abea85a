#include "api/wrappers.h"
#include "base/life.h"
#include "driver/contexts.h"
#include "driver/primaries.h"
#include "driver/symbols.h"
#include "link/joining.h"
#include "memory/account.h"
#include "memory/amounts.h"
#include "memory/claims.h"
#include "memory/devices.h"
#include "memory/pools.h"

/* Where CUDA begins and ends in a process. */

CUresult es_cuInit(unsigned int Flags) {
    ES_REAL_OR_RETURN(cuInit);
    /* Before the driver opens descriptors of its own. */
    es_join_anew();
    return ES_DRIVER(cuInit)(Flags);
}
ES_EXPORT(cuInit);

/* The driver has answered a call that makes a context, which was claimed. */
static CUresult context_made(struct es_claim *claim, CUresult result, const CUcontext *context) {
    if (result == CUDA_SUCCESS)
        es_driver_keep();
    if (result == CUDA_SUCCESS && context != NULL)
        es_account_keep_context(claim, *context);
    else
        es_account_drop_context(claim);
    return result;
}

/* A forked child that makes a context is a client of its own from here on. */
#define MAKE_CONTEXT(name, parameters, arguments)  \
    CUresult es_##name parameters {                \
        struct es_claim claim;                     \
        CUresult result;                           \
                                                   \
        ES_REAL_OR_RETURN(name);                   \
        es_join_anew();                            \
        if (es_device_foreign(dev))                \
            return CUDA_ERROR_INVALID_DEVICE;      \
        if (!es_claim_context(&claim, dev))        \
            return CUDA_ERROR_OUT_OF_MEMORY;       \
        result = ES_DRIVER(name) arguments;        \
        return context_made(&claim, result, pctx); \
    }                                              \
    ES_EXPORT(name)

MAKE_CONTEXT(cuCtxCreate, (CUcontext * pctx, unsigned int flags, CUdevice dev), (pctx, flags, dev));
MAKE_CONTEXT(cuCtxCreate_v2, (CUcontext * pctx, unsigned int flags, CUdevice dev), (pctx, flags, dev));
MAKE_CONTEXT(cuCtxCreate_v3,
             (CUcontext * pctx, CUexecAffinityParam *paramsArray, int numParams, unsigned int flags, CUdevice dev),
             (pctx, paramsArray, numParams, flags, dev));
MAKE_CONTEXT(cuCtxCreate_v4, (CUcontext * pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags, CUdevice dev),
             (pctx, ctxCreateParams, flags, dev));

/* Pools outlive a context, but need not keep what it had of them. */
static void account_ended(CUcontext context) {
    es_account_context_ended(context);
    if (es_amounts_counts())
        es_pools_look(-1);
}

/* `ended` says whether a call that succeeded was the end: a context that goes on is noted anew at its next launch. */
#define END_CONTEXT(name, ended)               \
    CUresult es_##name(CUcontext ctx) {        \
        CUresult result;                       \
                                               \
        ES_REAL_OR_RETURN(name);               \
        if (!es_life_apart())                  \
            es_context_end(ctx);               \
        result = ES_DRIVER(name)(ctx);         \
        if (result == CUDA_SUCCESS && (ended)) \
            account_ended(ctx);                \
        return result;                         \
    }                                          \
    ES_EXPORT(name)

/* What is detached was current, and stays so unless that was its last use. */
static bool current_is(CUcontext context) {
    CUcontext current = NULL;

    return ES_DRIVER(cuCtxGetCurrent) != NULL && ES_DRIVER(cuCtxGetCurrent)(&current) == CUDA_SUCCESS && current == context;
}

END_CONTEXT(cuCtxDestroy, true);
END_CONTEXT(cuCtxDestroy_v2, true);
END_CONTEXT(cuCtxDetach, !current_is(ctx));

/* Who finds none makes it. */
static bool claim_primary(struct es_claim *claim, CUdevice dev) {
    unsigned int flags;
    int active = 0;

    *claim = (struct es_claim){.bytes = 0};
    if (ES_DRIVER(cuDevicePrimaryCtxGetState) == NULL ||
        ES_DRIVER(cuDevicePrimaryCtxGetState)(dev, &flags, &active) != CUDA_SUCCESS || active != 0)
        return true;
    return es_claim_context(claim, dev);
}

CUresult es_cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev) {
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct es_primary *primary;
    struct es_claim claim;

    ES_REAL_OR_RETURN(cuDevicePrimaryCtxRetain);
    es_join_anew();
    if (es_device_foreign(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    primary = es_primary_take(dev);
    if (claim_primary(&claim, dev))
        result = context_made(&claim, ES_DRIVER(cuDevicePrimaryCtxRetain)(pctx, dev), pctx);
    if (result == CUDA_SUCCESS && primary != NULL) {
        primary->context = *pctx;
        primary->retained++;
    }
    es_primary_give(primary);
    return result;
}
ES_EXPORT(cuDevicePrimaryCtxRetain);

/* It is released for the last time. */
static bool ends(const struct es_primary *primary) { return primary != NULL && primary->retained == 1; }

static void released(struct es_primary *primary) {
    const bool ended = ends(primary);

    if (primary == NULL || primary->retained == 0)
        return;
    primary->retained--;
    if (ended) {
        account_ended(primary->context);
        primary->context = NULL;
    }
}

#define RELEASE_PRIMARY(name)                          \
    CUresult es_##name(CUdevice dev) {                 \
        struct es_primary *primary;                    \
        CUresult result;                               \
                                                       \
        ES_REAL_OR_RETURN(name);                       \
        primary = es_primary_take(dev);                \
        if (ends(primary) && primary->context != NULL) \
            es_context_end(primary->context);          \
        result = ES_DRIVER(name)(dev);                 \
        if (result == CUDA_SUCCESS)                    \
            released(primary);                         \
        es_primary_give(primary);                      \
        return result;                                 \
    }                                                  \
    ES_EXPORT(name)

RELEASE_PRIMARY(cuDevicePrimaryCtxRelease);
RELEASE_PRIMARY(cuDevicePrimaryCtxRelease_v2);

#define RESET_PRIMARY(name)                              \
    CUresult es_##name(CUdevice dev) {                   \
        struct es_primary *primary;                      \
        CUresult result;                                 \
                                                         \
        ES_REAL_OR_RETURN(name);                         \
        primary = es_primary_take(dev);                  \
        if (primary != NULL && primary->context != NULL) \
            es_context_end(primary->context);            \
        result = ES_DRIVER(name)(dev);                   \
        if (result == CUDA_SUCCESS && primary != NULL) { \
            account_ended(primary->context);             \
            primary->context = NULL;                     \
        }                                                \
        es_primary_give(primary);                        \
        return result;                                   \
    }                                                    \
    ES_EXPORT(name)

RESET_PRIMARY(cuDevicePrimaryCtxReset);
RESET_PRIMARY(cuDevicePrimaryCtxReset_v2);

/* The handle of a primary context that is retained. */
static CUcontext primary_of(CUdevice dev) {
    CUcontext context;

    if (ES_DRIVER(cuDevicePrimaryCtxRetain) == NULL || ES_DRIVER(cuDevicePrimaryCtxRelease_v2) == NULL ||
        ES_DRIVER(cuDevicePrimaryCtxRetain)(&context, dev) != CUDA_SUCCESS)
        return NULL;
    (void)ES_DRIVER(cuDevicePrimaryCtxRelease_v2)(dev);
    return context;
}

/* The handle under which programs submit to a green context; NULL: unknown. */
static CUcontext handle_of(CUgreenCtx green) {
    CUcontext context = NULL;

    if (ES_DRIVER(cuCtxFromGreenCtx) == NULL || ES_DRIVER(cuCtxFromGreenCtx)(&context, green) != CUDA_SUCCESS)
        return NULL;
    return context;
}

/* The driver has answered a call that makes a green context, and maybe the primary one, which were claimed. */
static void green_made(struct es_claim *own, struct es_claim *made, CUdevice dev, struct es_primary *primary, CUgreenCtx green) {
    const CUcontext context = handle_of(green);

    (void)context_made(own, context != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT, &context);
    if (primary != NULL && primary->context == NULL)
        primary->context = primary_of(dev);
    if (primary != NULL && primary->context != NULL)
        es_account_keep_context(made, primary->context);
    es_account_drop_context(made);
    if (primary != NULL)
        primary->retained++;
}

/* A green context has part of its device's processors, and what it allocates is the primary context's, which it retains. */
CUresult es_cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags) {
    struct es_claim own = {.bytes = 0}, made;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct es_primary *primary;

    ES_REAL_OR_RETURN(cuGreenCtxCreate);
    es_join_anew();
    if (es_device_foreign(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    primary = es_primary_take(dev);
    if (claim_primary(&made, dev) && es_claim_context(&own, dev))
        result = ES_DRIVER(cuGreenCtxCreate)(phCtx, desc, dev, flags);
    if (result == CUDA_SUCCESS)
        green_made(&own, &made, dev, primary, *phCtx);
    es_account_drop_context(&own);
    es_account_drop_context(&made);
    es_primary_give(primary);
    return result;
}
ES_EXPORT(cuGreenCtxCreate);

/* The device of a context; -1: unknown. */
static CUdevice device_of(CUcontext context) {
    CUcontext ignored;
    CUdevice device = -1;

    if (context == NULL || ES_DRIVER(cuCtxPushCurrent_v2)(context) != CUDA_SUCCESS)
        return -1;
    if (ES_DRIVER(cuCtxGetDevice)(&device) != CUDA_SUCCESS)
        device = -1;
    (void)ES_DRIVER(cuCtxPopCurrent_v2)(&ignored);
    return device;
}

CUresult es_cuGreenCtxDestroy(CUgreenCtx hCtx) {
    struct es_primary *primary = NULL;
    CUcontext context = NULL;
    CUresult result;

    ES_REAL_OR_RETURN(cuGreenCtxDestroy);
    if (!es_life_apart()) {
        context = handle_of(hCtx);
        primary = es_primary_take(device_of(context));
    }
    if (context != NULL)
        es_context_end(context);
    if (ends(primary) && primary->context != NULL)
        es_context_end(primary->context);
    result = ES_DRIVER(cuGreenCtxDestroy)(hCtx);
    if (result == CUDA_SUCCESS) {
        if (!ends(primary))
            es_account_bequeath(context, primary != NULL ? primary->context : NULL);
        es_account_context_ended(context);
        released(primary);
    }
    es_primary_give(primary);
    return result;
}
ES_EXPORT(cuGreenCtxDestroy);
