#ifndef EDGESHARE_CONTEXTS_H
#define EDGESHARE_CONTEXTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/state.h"
#include "driver_api.h"

/* The contexts that the program submits to. All functions take es_state_lock themselves unless they say otherwise, and call
 * the driver without it. */

enum { ES_CONTEXTS = 256 };

/* A stretch of calls of the hook's own: in it, what the driver forbids while some thread of the program captures (event
 * queries among others) is allowed, and breaks no capture. */
struct es_quiet {
    CUstreamCaptureMode mode;
    bool exchanged;
};
struct es_quiet es_quiet_begin(void);
void es_quiet_end(struct es_quiet quiet);

/* The calling thread's, or NULL. */
CUcontext es_context_current(void);

/* The number of a context, which is noted when it is new; -1 when there are too many. It is never another's, so that
 * what is kept under it is nobody's once the context has ended. */
int es_context_note(CUcontext context) ES_LOCKED(es_state_lock);

/* The noted context, or NULL when it has ended. */
CUcontext es_context_handle(int context) ES_LOCKED(es_state_lock);

/* More than one context is there: a default stream's handle does not say which one is meant. */
bool es_contexts_many(void);

/* Makes a context that is held current in the calling thread, until it is left again. */
struct es_entered {
    bool current; /* false: it could not be done, and no call that needs a context may be made */
    bool pushed;
};
struct es_entered es_context_enter(CUcontext context);
void es_context_leave(struct es_entered entered);

/* A context is about to end, with all its streams and events: nobody starts to use it any more. Returns when nobody does:
 * at once where nobody did; when the work is done that the hook's own thread waits for in it, as its end waits for that, too;
 * and after a second where another thread does not come back from the driver. */
void es_context_end(CUcontext context);

/* While somebody is inside the driver on behalf of this context; false when it has ended. */
bool es_context_hold(int context) ES_LOCKED(es_state_lock);
void es_context_drop(int context) ES_LOCKED(es_state_lock);

/* Whether the hook's own thread waits in a held context for work, which its end waits for, too. */
void es_context_await(int context, bool awaited) ES_LOCKED(es_state_lock);

/* In a forked child. */
void es_contexts_reset(void);

#endif
