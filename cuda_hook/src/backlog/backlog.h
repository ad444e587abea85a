#ifndef EDGESHARE_BACKLOG_H
#define EDGESHARE_BACKLOG_H

#include <stdint.h>

#include "base/state.h"
#include "core/times/costs.h"
#include "core/times/overlap.h"
#include "core/times/spent.h"
#include "core/times/timeline.h"

/* What is known about the work that this process has queued on the device. Under es_state_lock. */
struct es_backlog {
    struct es_timeline timeline;
    struct es_overlap overlap;
    struct es_costs costs;
    uint64_t over_ns;         /* of all that had been submitted, what is counted, by its estimates */
    struct es_beside beside;  /* … and what is yet to be counted of that */
    uint64_t run_from_ns;     /* what had been submitted when last nothing was queued */
    uint64_t guessed_ns;      /* what had been submitted by the latest launch of which no exact time is known, */
    uint64_t unseen_ns;       /* … and by the latest of which none at all is, or that waits for the host */
    uint64_t held_streams;    /* set of those in which a function of the host was queued behind all that was marked */
    uint64_t overdue_pass_ns; /* when a launch last passed because the head was overdue */
    uint64_t waits;           /* how often a thread waited for the device, or queued what tells the host how far that is */
    bool singly;              /* launches of this program were marked by themselves, though nothing else asked for that */
    uint32_t waiters;         /* threads that wait for a batch to end; atomic */
};

extern struct es_backlog es_backlog ES_UNDER(es_state_lock) __attribute__((visibility("hidden")));

/* In a forked child: what the parent queued is not its. */
void es_backlog_reset(void);

#endif
