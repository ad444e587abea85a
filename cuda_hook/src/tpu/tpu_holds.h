#ifndef EDGESHARE_TPU_HOLDS_H
#define EDGESHARE_TPU_HOLDS_H

#include <stdbool.h>
#include <stdint.h>

#include "tpu/hold.h"

/* The descriptors by which this process has its EdgeTPU. Each keeps the slice (es_tpu_enter, es_tpu_keep). */

enum { ES_TPU_HOLDS = 64 }; /* descriptors that are told apart; what is beyond keeps nothing */

extern uint32_t es_tpu_held __attribute__((visibility("hidden"))); /* how many there are; atomic */

/* One load where there are none. */
static inline bool es_tpu_holds_none(void) { return __builtin_expect(__atomic_load_n(&es_tpu_held, __ATOMIC_ACQUIRE) == 0, 1); }

/* A descriptor of a node was opened, by whoever has entered: from now on it keeps the slice. All of these keep errno. */
void es_tpu_hold_opened(int fd, int node, int flags);

/* An interface was claimed, likewise. */
void es_tpu_hold_claimed(int fd, uint32_t interface);

/* An interface was released. */
void es_tpu_hold_released(int fd, uint32_t interface);

/* A descriptor was duplicated. */
void es_tpu_hold_copied(int fd, int copy);

/* A descriptor is about to be closed: takes it off, into *was. False when it is none of these. Then es_tpu_hold_closed,
 * or es_tpu_hold_stays where it was not. */
bool es_tpu_hold_closing(int fd, struct es_tpu_hold *was);
bool es_tpu_hold_closing_range(unsigned int first, unsigned int last, struct es_tpu_hold *was); /* any one of these */
void es_tpu_hold_closed(const struct es_tpu_hold *was);
void es_tpu_hold_stays(const struct es_tpu_hold *was);

/* Somebody has changed which of them outlive exec. */
void es_tpu_hold_flagged(void);

/* Gives the device up without closing the descriptors, so that another process can have it; none is given up where one
 * cannot be (it is mapped): then false. */
bool es_tpu_park(void);

/* Takes it back: 1 when the driver has forgotten what was done by a descriptor, 0 when not, -1 with errno when it cannot be
 * had. By whoever has entered. */
int es_tpu_unpark(void);

#endif
