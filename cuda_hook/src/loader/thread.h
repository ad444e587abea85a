#ifndef EDGESHARE_THREAD_H
#define EDGESHARE_THREAD_H

/* Starts a detached thread, which inherits what signals are blocked. 0, or what pthread_create says; -1 where the process has no
 * threads. */
int es_thread_start(void *(*run)(void *));

#endif
