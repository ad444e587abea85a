#ifndef EDGESHARE_DRAIN_H
#define EDGESHARE_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

/* The grant was called back: waits until all that was queued is done, then releases. Also returns when the manager did
 * not wait for that: it granted anew, or went away. `sleeps`: in the driver, until a marker is done; only the hook's own
 * thread does, whose current context is nobody's business. */
void es_drain_give_back(uint32_t number, bool sleeps);

#endif
