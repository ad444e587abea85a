#ifndef EDGESHARE_HELPER_H
#define EDGESHARE_HELPER_H

#include <stdint.h>

/* The one thread that the hook adds: it gives slices back, and tells waiting threads that queued work is done. */

/* Starts it, at the first grant; does nothing later. */
void es_helper_start(void);

/* Wakes it when it sleeps: somebody waits for queued work, or for a grant (`owed`, else 0) to be given back first. Where
 * no thread could be had, the caller gives that back itself, here. */
void es_helper_call(uint32_t owed);

/* In a forked child: the thread is not here. */
void es_helper_reset(void);

#endif
