#ifndef EDGESHARE_SESSION_H
#define EDGESHARE_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "core/record.h"

/* The connection to the node's manager. */

/* Joins when this process has not tried yet: finds the allocation, says HELLO, maps the pages. Called where CUDA begins
 * (cuInit, a context, a first submission); short and bounded. In a forked child it does nothing. */
void es_session_join(void);

/* In a forked child that makes a context of its own: forgets the parent's session, joins, and returns true. Elsewhere it
 * is es_session_join. */
bool es_session_join_anew(void);

/* Sends a record without waiting; with the gate's lock held, so that records leave in the order of the states that they
 * tell. False when the manager is gone or takes nothing. */
bool es_session_send(void *record);

/* Sends a record and waits for its answer (the same number), at most a second; a session in which there is none by then is
 * given up. Returns es_gate.session as it was when the record was sent; 0 when there is no answer: the manager is away.
 * Without the gate's lock. */
uint32_t es_session_ask(void *record, void *answer, uint16_t kind);

/* A number for the next es_session_ask. */
uint32_t es_session_number(void);

/* Gives the session up. Without the gate's lock. */
void es_session_end(const char *why);

/* Does the manager still live? Otherwise the session is given up (mode ES_AWAY). */
void es_session_look(void);

/* No manager: tries to join again when it is time, and after the grace time lets launches pass or not, as the policy
 * says. Returns how long to sleep before the next try. */
uint64_t es_session_away(void);

#endif
