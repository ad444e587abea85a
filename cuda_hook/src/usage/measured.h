#ifndef EDGESHARE_MEASURED_H
#define EDGESHARE_MEASURED_H

#include <stdint.h>

#include "base/state.h"
#include "core/times/bursts.h"
#include "core/times/gaps.h"

/* What the markers that were reached have told of the GPU time. Under es_state_lock. */
struct es_measured {
    uint64_t gpu_ns; /* not yet told to the manager */
    struct es_gaps gaps;
    uint32_t begun;          /* the grant under which a batch was opened last */
    uint64_t burst_ns;       /* usual time from an idle device to a wait */
    uint32_t doubted;        /* so many more are marked before they are waited for: one took longer than it should */
    struct es_bursts bursts; /* that were not the first of a grant, */
    struct es_bursts begins; /* and that were */
    uint64_t hand_over_ns;   /* usually from when the device falls free to the begin of this client's work; 0: unknown */
};

extern struct es_measured es_measured ES_UNDER(es_state_lock) __attribute__((visibility("hidden")));

/* One took so long from an idle device to a wait. */
void es_measured_burst(uint64_t ns) ES_LOCKED(es_state_lock);

/* In a forked child. */
void es_measured_reset(void);

#endif
