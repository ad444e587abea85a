#ifndef EDGESHARE_PLACES_H
#define EDGESHARE_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/streams.h"

/* The number of a stream that is about to be submitted to. Where all places are taken, batches are closed for one: this
 * thread's, and then those of all others. */
int es_place_of(CUstream stream);

/* What a thread that waits for a place for its stream saw end last, and when; 0 at first. */
struct es_patience {
    uint32_t progress;
    uint64_t since_ns;
};

/* Makes room for a submission to a stream that has no place (ES_STREAM_LATER), under an open gate. False when something
 * has ended since, or it waited for that. True when nothing has for long: then the thread may go, uncounted. */
bool es_place_give_up(struct es_patience *patience, uint64_t key);

#endif
