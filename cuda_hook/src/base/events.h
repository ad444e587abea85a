#ifndef EDGESHARE_EVENTS_H
#define EDGESHARE_EVENTS_H

#include <stdint.h>

#include "base/state.h"

/* What happens on a floor and concerns those above it. hook.c alone says what is done then, and is the one file that a lower
 * floor reaches a higher one by. */

/* A manager has welcomed this process: before its pages take the place of the last one's, and after that. */
void es_on_welcome(void);
void es_on_welcomed(void);

/* … between the two, as the session begins: its pages are there, and its word is about to hold. */
void es_on_session(uint64_t now_ns) ES_LOCKED(es_state_lock);

/* … and once it holds. */
void es_on_joined(void);

/* A context has ended, as far as the hook is concerned. */
void es_on_context_ended(int context) ES_LOCKED(es_state_lock);

/* The place of a stream is another stream's from now on. */
void es_on_place_left(int stream) ES_LOCKED(es_state_lock);

/* In a forked child in which CUDA begins: all floors forget what was the parent's. */
void es_on_forked(void);

/* In a forked child that makes use of an EdgeTPU: what is open is the parent's to give back. */
void es_on_tpu_forked(void);

#endif
