#ifndef EDGESHARE_CORE_ALLOWANCE_H
#define EDGESHARE_CORE_ALLOWANCE_H

#include "wire_checks.h"

/* A client's allowance words: bytes of a device that it holds and does not use. Both sides change them at any time, so
 * each change is one atomic operation. `device` is below ES_DEVICES_MAX. */

/* The client's side: takes `bytes` before it asks the driver for them; 0 when so much is not there. */
int es_allowance_take(struct es_hint_page *page, uint32_t device, uint64_t bytes);

/* Puts back what the driver refused or freed; the manager: adds what it grants. */
void es_allowance_put(struct es_hint_page *page, uint32_t device, uint64_t bytes);

/* The manager's side: takes all that is there, `most` at the most (it knows what the client holds; the word may say
 * anything). Returns what it took. What it leaves, it leaves in the word. */
uint64_t es_allowance_take_back(struct es_hint_page *page, uint32_t device, uint64_t most);

/* What stands in the word. */
uint64_t es_allowance_standing(const struct es_hint_page *page, uint32_t device);

#endif
