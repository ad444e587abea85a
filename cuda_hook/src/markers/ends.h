#ifndef EDGESHARE_ENDS_H
#define EDGESHARE_ENDS_H

#include <stdbool.h>
#include <stdint.h>

#include "backlog/closed.h"
#include "base/state.h"
#include "driver_api.h"

/* What is counted of closed batches (closed.h) that have ended. */

/* The head was seen to have ended, so long after its start and after the latest end that was counted. */
void es_ends_head(int64_t start_ns, int64_t after_ns, uint64_t now_ns) ES_LOCKED(es_state_lock);

/* A batch's stream is through with it, before the head of all is. */
void es_ends_pass_over(struct es_closed *batch, uint64_t now_ns) ES_LOCKED(es_state_lock);

/* The marker of the latest end that was counted, where it is of this context, else NULL. */
CUevent es_ends_latest(int context) ES_LOCKED(es_state_lock);

/* A batch begins with a start of its own. Where nothing is closed nobody measures from the latest end any more: true, then. */
bool es_ends_let_go(void) ES_LOCKED(es_state_lock);

/* Whether that would give a marker back. */
bool es_ends_can_let_go(void) ES_LOCKED(es_state_lock);

/* When the latest end that was counted was. By the thread that collects, which alone changes it, and needs no lock for it. */
uint64_t es_ends_latest_ns(void);

/* Where streams run beside each other: all that was submitted to these is done, as who waited for it knows. To be said when what
 * had ended was collected. */
void es_ends_over(uint64_t streams, uint64_t now_ns) ES_LOCKED(es_state_lock);

/* So much by its estimate was waited for until `ended_ns` and ended by no marker: it is counted. `beside`: others' work may have
 * run in the same time. */
void es_ends_waited(uint64_t used_ns, uint64_t ended_ns, bool beside) ES_LOCKED(es_state_lock);

/* A context ends: its markers are nobody's any more. */
void es_ends_forget(int context) ES_LOCKED(es_state_lock);

/* This place is another stream's from now on. */
void es_ends_leave_stream(int stream) ES_LOCKED(es_state_lock);

/* In a forked child: what the parent queued is not its. */
void es_ends_reset(void);

#endif
