/* What ends with a context, in all chapters: above them all. */
#include "driver/array/array.h"
#include "driver/context/context.h"
#include "driver/event/event.h"
#include "driver/graph/graph.h"
#include "driver/memory/memory.h"
#include "driver/module/module.h"
#include "driver/stream/host.h"
#include "driver/stream/stream.h"

void context_ended(struct CUctx_st *context) {
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
}
