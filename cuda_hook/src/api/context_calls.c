#include <string.h>

#include "api/wrappers.h"
#include "base/life.h"
#include "base/state.h"
#include "driver/contexts.h"
#include "driver/symbols.h"
#include "link/joining.h"
#include "memory/account.h"
#include "memory/amounts.h"
#include "memory/claims.h"
#include "memory/devices.h"
#include "memory/pools.h"

/* Where CUDA begins and ends in a process. */

CUresult es_cuInit(unsigned int Flags) {
    CUresult result;

    ES_REAL_OR_RETURN(cuInit);
    /* Before the driver opens descriptors of its own. */
    es_join();
    result = ES_DRIVER(cuInit)(Flags);
    if (result == CUDA_SUCCESS)
        es_driver_keep();
    return result;
}
ES_EXPORT(cuInit);

/* The driver has answered a call that makes a context, which was claimed. */
static CUresult context_made(struct es_claim *claim, CUresult result, const CUcontext *context) {
    if (result == CUDA_SUCCESS)
        es_driver_use();
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
        (void)es_join_anew();                      \
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

/* A primary context ends when it was released as often as it was retained. */
enum { DEVICES = 64 };

static struct {
    CUcontext context;
    uint32_t retained;
} primaries[DEVICES];

/* The first to retain it makes it. */
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
    struct es_claim claim;
    CUresult result;

    ES_REAL_OR_RETURN(cuDevicePrimaryCtxRetain);
    if (es_join_anew())
        memset(primaries, 0, sizeof(primaries));
    if (es_device_foreign(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!claim_primary(&claim, dev))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = context_made(&claim, ES_DRIVER(cuDevicePrimaryCtxRetain)(pctx, dev), pctx);
    if (result == CUDA_SUCCESS && dev >= 0 && dev < DEVICES) {
        es_lock_take(&es_state_lock);
        primaries[dev].context = *pctx;
        primaries[dev].retained++;
        es_lock_give(&es_state_lock);
    }
    return result;
}
ES_EXPORT(cuDevicePrimaryCtxRetain);

/* The primary context, if it ends by being released once more or by a reset; else NULL. */
static CUcontext ending(CUdevice dev, bool reset) {
    CUcontext context = NULL;

    if (dev < 0 || dev >= DEVICES || es_life_apart())
        return NULL;
    es_lock_take(&es_state_lock);
    if (primaries[dev].retained > 0 && (reset || --primaries[dev].retained == 0)) {
        context = primaries[dev].context;
        primaries[dev].retained = 0;
    }
    es_lock_give(&es_state_lock);
    return context;
}

/* A green context is part of a primary one, which it retains. */
CUresult es_cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags) {
    CUresult result;

    ES_REAL_OR_RETURN(cuGreenCtxCreate);
    if (es_join_anew())
        memset(primaries, 0, sizeof(primaries));
    if (es_device_foreign(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    result = ES_DRIVER(cuGreenCtxCreate)(phCtx, desc, dev, flags);
    if (result == CUDA_SUCCESS && dev >= 0 && dev < DEVICES) {
        es_lock_take(&es_state_lock);
        primaries[dev].retained++;
        es_lock_give(&es_state_lock);
    }
    return result;
}
ES_EXPORT(cuGreenCtxCreate);

/* The handle under which programs submit to a green context, and the device it is on; -1: unknown. */
static CUdevice green_context(CUgreenCtx green, CUcontext *context) {
    CUcontext ignored;
    CUdevice device = -1;

    *context = NULL;
    if (ES_DRIVER(cuCtxFromGreenCtx) == NULL || ES_DRIVER(cuCtxFromGreenCtx)(context, green) != CUDA_SUCCESS ||
        ES_DRIVER(cuCtxPushCurrent_v2)(*context) != CUDA_SUCCESS)
        return -1;
    if (ES_DRIVER(cuCtxGetDevice)(&device) != CUDA_SUCCESS)
        device = -1;
    (void)ES_DRIVER(cuCtxPopCurrent_v2)(&ignored);
    return device;
}

CUresult es_cuGreenCtxDestroy(CUgreenCtx hCtx) {
    CUcontext primary, context = NULL;
    CUresult result;

    ES_REAL_OR_RETURN(cuGreenCtxDestroy);
    primary = es_life_apart() ? NULL : ending(green_context(hCtx, &context), false);
    if (context != NULL)
        es_context_end(context);
    if (primary != NULL)
        es_context_end(primary);
    result = ES_DRIVER(cuGreenCtxDestroy)(hCtx);
    if (result == CUDA_SUCCESS)
        account_ended(primary);
    return result;
}
ES_EXPORT(cuGreenCtxDestroy);

#define END_PRIMARY(name, reset)       \
    CUresult es_##name(CUdevice dev) { \
        CUcontext context;             \
        CUresult result;               \
                                       \
        ES_REAL_OR_RETURN(name);       \
        context = ending(dev, reset);  \
        if (context != NULL)           \
            es_context_end(context);   \
        result = ES_DRIVER(name)(dev); \
        if (result == CUDA_SUCCESS)    \
            account_ended(context);    \
        return result;                 \
    }                                  \
    ES_EXPORT(name)

END_PRIMARY(cuDevicePrimaryCtxRelease, false);
END_PRIMARY(cuDevicePrimaryCtxRelease_v2, false);
END_PRIMARY(cuDevicePrimaryCtxReset, true);
END_PRIMARY(cuDevicePrimaryCtxReset_v2, true);
