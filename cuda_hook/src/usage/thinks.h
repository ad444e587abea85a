#ifndef EDGESHARE_THINKS_H
#define EDGESHARE_THINKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/state.h"

enum { ES_IDLE_NS = 100 * 1000 * 1000 }; /* with no rival: idle that long gives the grant back */

/* For how long the program thinks: from when the device was seen drained to its next submission. Under es_state_lock. */
struct es_thinks {
    uint64_t idle_since_ns; /* when the device was last seen drained; 0: it is not, or nobody knows */
    uint64_t usual_ns;      /* usual time from there to the next launch; atomic */
    uint32_t seen;          /* how many such times were seen */
};

extern struct es_thinks es_thinks ES_UNDER(es_state_lock) __attribute__((visibility("hidden")));

/* A submission is on its way: if the device stood idle until now, that was a think time of the program. Takes the lock. */
void es_thinks_return(void);

/* How long a drained client may keep its turn while it thinks: for as long as it takes the device to go to another and
 * back, if that is more than the manager said. Callable without the lock. */
uint64_t es_thinks_most_ns(void);

/* How long a drained client keeps its turn. */
uint64_t es_thinks_patience_ns(bool contended) ES_LOCKED(es_state_lock);

/* In a forked child. */
void es_thinks_reset(void);

#endif
