/* Events, and when what they were recorded after is done. */
#ifndef SIMGPU_EVENT_H
#define SIMGPU_EVENT_H

#include "driver/context/context.h"

void events_end(struct CUctx_st *context);

/* A new event of the context; NULL: no memory. */
struct CUevent_st *event_make(struct CUctx_st *context, unsigned int flags);

#endif
