#ifndef EDGESHARE_PLACES_H
#define EDGESHARE_PLACES_H

#include "driver/streams.h"

/* The index of a stream that is about to be submitted to. Where all places are taken, batches are closed for one: this
 * thread's, and then those of all others. */
int es_place_of(CUstream stream);

#endif
