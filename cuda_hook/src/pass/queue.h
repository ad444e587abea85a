#ifndef EDGESHARE_QUEUE_H
#define EDGESHARE_QUEUE_H

#include "threads/slots.h"

/* Makes room for one submission, to the stream of this number, under an open gate's `word`: keeps what is queued on the
 * device within its cap. True when the thread may go, its slot prepared; false when it had to wait, or the stream has another
 * number by now: everything may have changed. */
bool es_queue_take(struct es_slot *slot, uint64_t key, CUstream stream, int number, uint32_t word);

#endif
