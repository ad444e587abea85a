/* How a context ends, with what was made in it in all chapters: above them all. */
#include "driver/allocation/allocation.h"
#include "driver/array/array.h"
#include "driver/capture/capture.h"
#include "driver/context/context.h"
#include "driver/event/event.h"
#include "driver/module/module.h"
#include "driver/pool/pool.h"
#include "driver/stream/host.h"
#include "driver/stream/queue.h"
#include "driver/stream/stream.h"

CUresult context_end(struct CUctx_st *context) {
    CUresult result = queue_drain(context, false);
    /* Other threads' handles to it are stale from here on. */
    context->mark = 0;
    capture_forget(context, NULL);
    host_end(context);
    streams_end(context);
    events_end(context);
    modules_end(context);
    arrays_end(context);
    mipmaps_end(context);
    allocations_end(context);
    pools_settle();
    if (context->primary)
        pools_end(context->device);
    context_drop(context);
    return result;
}
