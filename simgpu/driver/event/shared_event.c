#include "driver/event/shared_event.h"
#include "driver/base/driver.h"
#include "driver/base/objects.h"
#include "driver/context/context.h"
#include "driver/event/event.h"
#include "driver/stream/queue.h"
#include "machine/export.h"

#include <string.h>

struct place {
    char magic[8];
    uint64_t machine_ns; /* when the machine was made: it is another one's elsewhere */
    uint64_t export_id;
    int32_t export_index;
    uint32_t slot;
    uint64_t process; /* id */
    uint64_t unused[3];
};
_Static_assert(sizeof(struct place) == sizeof(CUipcEventHandle), "what a handle holds");

static const char MAGIC[8] = {'S', 'I', 'M', 'G', 'P', 'U', 'I', 'E'};

CUresult shared_event_make(struct CUevent_st *event, const struct CUctx_st *context) {
    event->export_index = export_make(&driver.machine, SIMGPU_EXPORT_EVENT, context->gpu, 0);
    if (event->export_index < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    event->export_id = driver.machine.shared->exports[event->export_index].id;
    return CUDA_SUCCESS;
}

void shared_event_end(struct CUevent_st *event) {
    if (is_shared_event(event))
        export_drop(&driver.machine, event->export_index, event->export_id);
}

static struct simgpu_export *entry_of(const struct CUevent_st *event) {
    return export_find(&driver.machine, event->export_index, event->export_id);
}

void shared_event_record(const struct CUevent_st *event, const struct CUctx_st *context, uint64_t after) {
    struct simgpu_export *entry = is_shared_event(event) ? entry_of(event) : NULL;
    if (!entry)
        return;
    /* A reader who sees the number sees its context; in between there is none. */
    store_u64(&entry->after, 0);
    store_u32(&entry->gpu, context->gpu);
    store_u32(&entry->context, context->index);
    store_u64(&entry->context_id, context->id);
    store_u64(&entry->after, after);
}

bool shared_event_target(const struct CUevent_st *event, struct CUctx_st *context, uint64_t *after) {
    const struct simgpu_export *entry = entry_of(event);
    *after = entry ? load_u64(&entry->after) : 0;
    if (!*after)
        return false;
    uint32_t index = load_u32(&entry->context);
    memset(context, 0, sizeof *context);
    context->mark = MARK_CONTEXT;
    context->gpu = load_u32(&entry->gpu);
    context->index = index;
    context->id = load_u64(&entry->context_id);
    context->shared = &driver.machine.shared->gpus[context->gpu].contexts[index];
    context->orders = orders_of(&driver.machine.shared->gpus[context->gpu], index);
    return load_u64(&entry->after) == *after;
}

CUresult shared_event_wait(const struct CUevent_st *event, bool blocking) {
    struct CUctx_st context;
    uint64_t after;
    if (!shared_event_target(event, &context, &after))
        return CUDA_SUCCESS;
    CUresult result = queue_wait(&context, after, blocking);
    /* With the process that recorded it, what it waited for is over. */
    return result == CUDA_ERROR_CONTEXT_IS_DESTROYED ? CUDA_SUCCESS : result;
}

CUresult shared_event_query(const struct CUevent_st *event) {
    struct CUctx_st context;
    uint64_t after;
    if (!shared_event_target(event, &context, &after))
        return CUDA_SUCCESS;
    CUresult error = queue_error(&context);
    if (error != CUDA_SUCCESS)
        return error == CUDA_ERROR_CONTEXT_IS_DESTROYED ? CUDA_SUCCESS : error;
    return queue_done(&context, after) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

EXPORT CUresult cuIpcGetEventHandle(CUipcEventHandle *pHandle, CUevent event) {
    CHECK_DRIVER();
    if (!LIVES(event, MARK_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!pHandle || !is_shared_event(event))
        return CUDA_ERROR_INVALID_VALUE;
    struct place place = {
        .machine_ns = driver.machine.shared->created_ns,
        .export_id = event->export_id,
        .export_index = event->export_index,
        .slot = (uint32_t)driver.machine.slot,
        .process = driver.machine.shared->processes[driver.machine.slot].id,
    };
    memcpy(place.magic, MAGIC, sizeof MAGIC);
    memcpy(pHandle, &place, sizeof place);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuIpcOpenEventHandle(CUevent *phEvent, CUipcEventHandle handle) {
    CURRENT(context);
    struct place place;
    memcpy(&place, &handle, sizeof place);
    if (!phEvent || memcmp(place.magic, MAGIC, sizeof MAGIC) != 0 || place.machine_ns != driver.machine.shared->created_ns)
        return CUDA_ERROR_INVALID_VALUE;
    if (place.process == driver.machine.shared->processes[driver.machine.slot].id)
        return CUDA_ERROR_INVALID_CONTEXT;
    const struct simgpu_export *entry = export_find(&driver.machine, place.export_index, place.export_id);
    if (!entry || entry->kind != SIMGPU_EXPORT_EVENT || !export_hold(&driver.machine, place.export_index, place.export_id))
        return CUDA_ERROR_INVALID_VALUE;
    struct CUevent_st *event = event_make(context, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    if (!event) {
        export_drop(&driver.machine, place.export_index, place.export_id);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    event->export_index = place.export_index;
    event->export_id = place.export_id;
    *phEvent = event;
    return CUDA_SUCCESS;
}
