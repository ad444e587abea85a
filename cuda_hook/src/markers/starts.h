#ifndef EDGESHARE_STARTS_H
#define EDGESHARE_STARTS_H

#include "threads/slots.h"

/* The first launch after the start of the thread's batch has returned. Where the device had come to the start, it stood
 * idle between the two for as long as the host took. */
void es_start_followed(struct es_slot *slot);

#endif
