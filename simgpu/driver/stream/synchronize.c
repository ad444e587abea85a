/* Who waits for all that a context has queued. */
#include "driver/base/driver.h"
#include "driver/capture/capture.h"
#include "driver/context/context.h"
#include "driver/stream/queue.h"

EXPORT CUresult cuCtxSynchronize(void) {
    CURRENT(context);
    CUresult result = capture_check_context(context);
    if (result != CUDA_SUCCESS)
        return result;
    return queue_drain(context, context->flags & CU_CTX_SCHED_BLOCKING_SYNC);
}

EXPORT CUresult cuCtxSynchronize_v2(CUcontext ctx) {
    CHECK_DRIVER();
    CUresult result = check_context(ctx, __func__);
    if (result == CUDA_SUCCESS)
        result = capture_check_context(ctx);
    if (result != CUDA_SUCCESS)
        return result;
    return queue_drain(ctx, ctx->flags & CU_CTX_SCHED_BLOCKING_SYNC);
}
