#ifndef EDGESHARE_GRANT_H
#define EDGESHARE_GRANT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/state.h"
#include "threads/slots.h"

enum { ES_LOOK_NS = 100 * 1000 * 1000 }; /* how often a waiter looks whether the manager still lives */

/* What was asked for and given back. Everything but the atomics is under es_state_lock. */
struct es_grant {
    uint32_t released; /* the number of the grant that was given back last; atomic */
    /* A REQUEST was sent in this session: the manager waits for the drains of such clients alone. */
    bool introduced ES_UNDER(es_state_lock);
    bool requested ES_UNDER(es_state_lock); /* REQUEST or FOLLOWS was sent for the next grant */
    uint64_t requested_ns ES_UNDER(es_state_lock);
    uint64_t lead_ns; /* how much earlier a thread has to wake to launch at a point in time; atomic */
    uint32_t paused;  /* a pause of the hook's own: shut for some microseconds while the helper looks; a private futex */
    const struct es_slot *pauser;               /* whose thread alone submits during it; NULL: none does; atomic */
    uint64_t paused_ns ES_UNDER(es_state_lock); /* when it began */
};

extern struct es_grant es_grant __attribute__((visibility("hidden")));

/* Asks for a slice. */
void es_grant_request(uint64_t now_ns) ES_LOCKED(es_state_lock);

/* Gives the grant back, as foretold when the next client begins then or before. False when the record did not go out. */
bool es_grant_release(uint32_t number, bool foretold) ES_LOCKED(es_state_lock);

/* Shuts the gate for this process alone, so that the helper can look; after it, submissions in progress are exactly
 * those whose slot is busy. False when the gate is not open. es_grant_resume opens it again. */
bool es_grant_pause(void);
void es_grant_resume(void);

/* Shuts the gate for all threads but one, which is to submit something while no other does. False when the gate is not open.
 * es_grant_include opens it again, if it is that thread's to open; after a millisecond without that it keeps nobody out any more. */
bool es_grant_exclude(const struct es_slot *slot);
void es_grant_include(const struct es_slot *slot);

/* Waits for the end of a pause, some time at most. */
void es_grant_await(void);

/* May the thread still submit under this word? The gate may be shut meanwhile, or be so for all others alone. */
bool es_grant_lasts(const struct es_slot *slot, uint32_t word);

/* A session begins: nothing of the last one was asked for or given back in it. */
void es_grant_begin(void) ES_LOCKED(es_state_lock);

/* In a forked child. */
void es_grant_reset(void);

#endif
