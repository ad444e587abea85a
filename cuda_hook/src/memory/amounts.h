#ifndef EDGESHARE_AMOUNTS_H
#define EDGESHARE_AMOUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/tools/lock.h"
#include "memory/devices.h"

/* How much of each device's memory this process uses, and how much of that the manager knows of. */

struct es_amount {
    uint64_t used;    /* by this process */
    uint64_t pending; /* within the driver just now, allowed by the cap last known */
    uint64_t known;   /* of `used`: what the manager of this session knows of */
    uint32_t contexts;
    uint32_t contexts_known;
};

/* Of the amounts, and of the account's blocks, which change with them; never held across a call of the driver. */
extern struct es_lock es_amounts_lock __attribute__((visibility("hidden")));
extern struct es_amount es_amounts[ES_ORDINALS] ES_UNDER(es_amounts_lock) __attribute__((visibility("hidden")));
extern uint32_t es_amounts_session ES_UNDER(es_amounts_lock) __attribute__((visibility("hidden"))); /* that `known` is of */

/* Does anybody count in this process? */
bool es_amounts_counts(void);

/* What the allocation uses of a device: as the manager has it, or without one what this process does. False where nobody
 * counts. `index` is the device's within the allocation. */
bool es_amounts_used(uint32_t index, unsigned long long *bytes);

/* Tells a manager that was joined anew what this process already has. */
void es_amounts_declare(void);

/* A session begins between the two: no bytes are counted meanwhile. */
void es_amounts_hold(void) ES_TAKES(es_amounts_lock);
void es_amounts_let(void) ES_GIVES(es_amounts_lock);

/* True while there is a manager. One that was just joined knows nothing yet. */
bool es_amounts_joined(void) ES_LOCKED(es_amounts_lock);

/* So in the session that es_amounts_joined saw: no other begins meanwhile. A record that the manager does not take is
 * tried again for a second; then the session ends, and its books, which would be wrong. */
void es_amounts_tell(uint16_t kind, uint32_t memory_kind, uint64_t bytes, int index) ES_LOCKED(es_amounts_lock);

/* Asks the manager. Returns the session in which it answered, or 0 when there is none to ask. Without the lock. */
uint32_t es_amounts_ask(int index, uint32_t memory_kind, uint64_t bytes, bool *granted);

/* Bytes that the manager counts and nobody uses. */
void es_amounts_put_back(int index, uint64_t bytes) ES_LOCKED(es_amounts_lock);

/* Bytes are used no more, or from now on: those that no manager granted, or one that is gone, the one that is there
 * now must hear of; of those that it has not heard of yet it need not hear. */
void es_amounts_unuse(CUdevice device, uint64_t bytes) ES_LOCKED(es_amounts_lock);
void es_amounts_use(CUdevice device, uint64_t bytes, uint32_t granted) ES_LOCKED(es_amounts_lock);

/* In a forked child: the parent's memory is not here. */
void es_amounts_reset(void);

#endif
