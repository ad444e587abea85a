/* Events, as they are made. */
#ifndef SIMGPU_EVENT_H
#define SIMGPU_EVENT_H

#include "driver/base/driver.h"

/* A new event of the context; NULL: no memory. */
struct CUevent_st *event_make(struct CUctx_st *context, unsigned int flags);

#endif
