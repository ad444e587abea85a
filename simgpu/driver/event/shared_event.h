/* Events that several processes record and wait for. */
#ifndef SIMGPU_SHARED_EVENT_H
#define SIMGPU_SHARED_EVENT_H

#include "driver/event/event.h"

static inline bool is_shared_event(const struct CUevent_st *event) { return event->flags & CU_EVENT_INTERPROCESS; }

/* Enters a new event among the machine's exports; takes it out. */
CUresult shared_event_make(struct CUevent_st *event, const struct CUctx_st *context);
void shared_event_end(struct CUevent_st *event);
/* It is recorded: done when the context has completed so many entries. */
void shared_event_record(const struct CUevent_st *event, const struct CUctx_st *context, uint64_t after);
/* Where it was recorded last, by whichever process: a context of that process, enough of it for queue_wait and
 * queue_done. False: there is nothing to wait for. */
bool shared_event_target(const struct CUevent_st *event, struct CUctx_st *context, uint64_t *after);
CUresult shared_event_query(const struct CUevent_st *event);
CUresult shared_event_wait(const struct CUevent_st *event, bool blocking);

#endif
