#ifndef EDGESHARE_CORE_GATE_PAGE_H
#define EDGESHARE_CORE_GATE_PAGE_H

#include "wire_checks.h"

/* The word of an open gate. `number` is the grant's, 1 to 2^30 - 1. */
uint32_t es_gate_open_word(uint32_t number, int contended);

/* The grant's number in a word; 0 where there was none yet. */
uint32_t es_gate_number(uint32_t word);

/* The manager's side: each stores the word with release order and wakes every thread that waits on it. `beside`:
 * es_beside_flags. */
void es_gate_open(struct es_gate_page *page, uint32_t number, int contended, uint64_t now_ns, uint64_t free_at_ns,
                  uint64_t ends_at_ns, uint32_t beside, uint32_t cap_ns);
/* The grant goes on beyond the end that was named. Wakes nobody: who looks then will see. */
void es_gate_prolong(struct es_gate_page *page, uint64_t ends_at_ns);
/* The manager looks at the hint page then. What is left there before need not be sent. */
void es_gate_promise(struct es_gate_page *page, uint64_t looks_at_ns);
/* What a client left there: false when that is that of grant `known` (0: nothing). */
int es_hint_left(const struct es_hint_page *page, uint32_t known, struct es_release *release, uint64_t *drained_at_ns);
/* Keeps the number of the grant that ends, so that the client can name it in its RELEASE. */
void es_gate_close(struct es_gate_page *page);
/* The page is dead: its client must connect anew. */
void es_gate_discard(struct es_gate_page *page);

/* The client's side. The page may be mapped read-only. */
uint32_t es_gate_load(const struct es_gate_page *page);

/* Leaves a RELEASE where the manager promised to look. False when that was too late, and it has to be sent. */
int es_hint_leave(struct es_hint_page *hint, const struct es_gate_page *gate, const struct es_release *release);

/* Sleeps while the word is `seen`, at most timeout_ns: 0 when woken or changed, else ETIMEDOUT or EINTR. */
int es_gate_wait(const struct es_gate_page *page, uint32_t seen, uint64_t timeout_ns);

/* Sleeps as es_gate_wait does, for the client's own helper, which es_gate_call wakes, too. es_gate_call wakes nobody else;
 * it returns how many it woke. */
int es_gate_park(const struct es_gate_page *page, uint32_t seen, uint64_t timeout_ns);
int es_gate_call(const struct es_gate_page *page);

#endif
