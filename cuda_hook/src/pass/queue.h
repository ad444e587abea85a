#ifndef EDGESHARE_QUEUE_H
#define EDGESHARE_QUEUE_H

#include "threads/slots.h"

/* Makes room for one submission, to the noted stream `index`, under an open gate's `word`: keeps what is queued on the
 * device within its cap. True when the thread may go, its slot prepared; false when it had to wait, and everything may have
 * changed. */
bool es_queue_take(struct es_slot *slot, uint64_t key, CUstream stream, int index, uint32_t word);

/* The same where neither lock nor clock is needed: for a submission of known cost to a stream that the open batch has touched,
 * as long as there is room. True when the thread may go; it is within the driver then, and counted. False: nothing has
 * changed. */
bool es_queue_join(struct es_slot *slot, uint64_t key, CUstream stream);

/* What a thread that waits for a place for its stream saw end last, and when; 0 at first. */
struct es_patience {
    uint32_t progress;
    uint64_t since_ns;
};

/* Makes room for a submission to a stream that has no place (ES_STREAM_LATER), under an open gate. False when something
 * has ended since, or it waited for that. True when nothing has for long: then the thread may go, uncounted. */
bool es_queue_give_up(struct es_patience *patience, uint64_t key);

#endif
