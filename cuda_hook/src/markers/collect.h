#ifndef EDGESHARE_COLLECT_H
#define EDGESHARE_COLLECT_H

#include <stdbool.h>
#include <stdint.h>

#include "driver_api.h"

/* What closed batches (closed.h) took, once they have ended. */

/* Takes closed batches off that have ended, and counts their GPU time. Never blocks; false, and at once, when another thread is
 * at it: then nobody knows what has ended since that one looked. */
bool es_collect(void);

/* Waits until the oldest has ended (in the driver, sleeping), and collects. For the helper alone. False when there is
 * none. */
bool es_collect_await(void);

/* In a forked child. */
void es_collect_reset(void);

#endif
