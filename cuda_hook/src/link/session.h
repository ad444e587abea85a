#ifndef EDGESHARE_SESSION_H
#define EDGESHARE_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/state.h"
#include "core/shared/record.h"
#include "link/channel.h"

/* The connection to the node's manager. */

/* A manager has welcomed this process over this channel, which is the session's from now on. */
void es_session_open(struct es_channel welcomed) ES_LOCKED(es_state_lock);

/* Sends a record without waiting; under the lock, so that records leave in the order of the states that they
 * tell. False when the manager is gone or takes nothing. */
bool es_session_send(void *record) ES_LOCKED(es_state_lock);

/* Sends a record and waits for its answer (the same number), at most a second; a session in which there is none by then is
 * given up. Returns es_link.session as it was when the record was sent; 0 when there is no answer: the manager is away.
 * Without es_state_lock. */
uint32_t es_session_ask(void *record, void *answer, uint16_t kind);

/* A number for the next es_session_ask. */
uint32_t es_session_number(void);

/* Gives the session up. Without es_state_lock. */
void es_session_end(const char *why);

/* Does the manager still live? Otherwise the session is given up (mode ES_AWAY). */
void es_session_look(void);

/* In a forked child. */
void es_session_reset(void);

#endif
