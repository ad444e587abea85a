/* Events, and when what they were recorded after is done. */
#ifndef SIMGPU_EVENT_H
#define SIMGPU_EVENT_H

#include "driver/base/objects.h"

struct CUevent_st {
    enum mark mark;
    unsigned int flags;
    bool recorded;
    struct CUctx_st *context;
    uint64_t after;
    uint64_t record_ns;
    uint64_t done_ns;             /* 0: not known to be done */
    struct capture *capture;      /* last recorded in a stream that is being captured */
    struct CUstream_st *captured; /* in this one */
    int32_t export_index;         /* of one that other processes may have too */
    uint64_t export_id;
    struct CUevent_st *next;
};

/* Notes the times of events whose entries will soon be overwritten. Under the context's lock. */
void events_settle(struct CUctx_st *context);
void events_end(struct CUctx_st *context);

/* A new event of the context; NULL: no memory. */
struct CUevent_st *event_make(struct CUctx_st *context, unsigned int flags);

#endif
