#ifndef EDGESHARE_WAITS_H
#define EDGESHARE_WAITS_H

#include <stdint.h>

#include "threads/slots.h"

/* What the program's own waits for the device tell. */

/* A wait of the thread returned, so that all it submitted to these streams is done: its open batch ends without a marker
 * when it touched no others. */
void es_waits_returned(struct es_slot *slot, uint64_t streams);

/* What is closed may have ended, and all in these streams has: counts it, and knows then whether the device is idle. */
void es_waits_look(uint64_t streams);

#endif
