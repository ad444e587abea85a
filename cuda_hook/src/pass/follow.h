#ifndef EDGESHARE_FOLLOW_H
#define EDGESHARE_FOLLOW_H

#include <stdbool.h>

#include "core/times/costs.h"
#include "threads/slots.h"

/* Submissions that follow others of the thread's open batch. */

/* Lets one go where neither lock nor clock is needed: a submission of known cost to a stream that the open batch has touched,
 * as long as there is room. True when the thread may go; it is within the driver then, and counted. False: nothing has
 * changed. */
bool es_follow(struct es_slot *slot, uint64_t key, CUstream stream);

/* The thread's open batch takes in a launch of this key and cost, for the first time, most likely. By that thread. */
void es_follow_share(struct es_slot *slot, uint64_t key, struct es_cost *cost, uint64_t cost_ns);

#endif
