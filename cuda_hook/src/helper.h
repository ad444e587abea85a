#ifndef EDGESHARE_HELPER_H
#define EDGESHARE_HELPER_H

/* The one thread that the hook adds: it gives slices back, and tells waiting threads that queued work is done. */

/* Starts it, at the first grant; does nothing later. */
void es_helper_start(void);

/* Wakes it when it sleeps: somebody waits for queued work, or for a slice that is to be given back first. */
void es_helper_call(void);

/* In a forked child: the thread is not here. */
void es_helper_reset(void);

#endif
