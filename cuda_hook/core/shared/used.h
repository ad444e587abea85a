#ifndef EDGESHARE_CORE_USED_H
#define EDGESHARE_CORE_USED_H

#include "wire_checks.h"

/* What a client says in its hint page of its use of the device, and of its idle time: when it wants nothing of it. The client
 * writes under a lock of its own; the manager reads meanwhile, each member whole. Times are CLOCK_MONOTONIC. */

/* Work that took so much has ended. */
void es_used_count(struct es_used *used, uint64_t gpu_ns);

/* For so long the device had nothing to do though something was queued: the host was slower than its kernels. */
void es_used_idle(struct es_used *used, uint64_t idle_ns);

/* So much was submitted and is not counted yet, by its estimates. */
void es_used_pend(struct es_used *used, uint64_t pending_ns);

/* Something is about to be submitted: a spell of idle time that lasts is over. */
void es_used_submit(struct es_used *used, uint64_t now_ns);

/* Nothing is queued any more, as was just seen: a spell begins, unless a launch is at the closed gate or one lasts. */
void es_used_drain(struct es_used *used, uint64_t now_ns);

/* Whether a launch is at the closed gate. That ends a spell; that there is none any more begins none, as it submits next. */
void es_used_wait(struct es_used *used, int waits, uint64_t now_ns);

/* The manager's side: what a client's page says. A spell that just ends may be missing, but is never there twice. */
void es_hint_used(const struct es_hint_page *page, struct es_used *into);

#endif
