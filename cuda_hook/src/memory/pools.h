#ifndef EDGESHARE_POOLS_H
#define EDGESHARE_POOLS_H

#include <stdbool.h>

#include "driver_api.h"
#include "memory/account.h"

/* Memory that the driver keeps for later in pools (what it keeps for graphs: graph_memory.h). It is counted as the driver
 * has reserved it, which changes by itself when streams reach frees: so it is looked at wherever it may have changed. All
 * of these call the driver. */

/* A pool of a device. The driver's default ones are noted at their first use. */
void es_pools_note(CUmemoryPool pool, CUdevice device);

/* The pool and its device, if it was noted; else NULL. */
CUmemoryPool es_pools_known(CUmemoryPool pool, CUdevice *device);

/* A pool has ended: what is still in use of it stays until it is freed. */
void es_pools_ended(CUmemoryPool pool);

/* For who allocates from a noted pool (growth.h): the allocation is within the driver from here on; what the pool has grown
 * by that is not counted yet, of which so much is claimed; and the driver has answered: its block (address 0: it refused),
 * and what is counted of the pool from now on. */
void es_pools_enter(CUmemoryPool pool);
uint64_t es_pools_growth(CUmemoryPool pool, uint64_t claimed);
void es_pools_leave(CUmemoryPool pool, struct es_block block, uint64_t grown);

/* What a pool has reserved and nobody uses, in bytes; 0 where the driver does not tell, or the pool has ended. */
uint64_t es_pools_unused(CUmemoryPool pool);

/* An address that was had from a pool, until it is given to a free; then, freed or not. */
struct es_block es_pools_take_out(CUdeviceptr address);
void es_pools_settle(struct es_block block, bool freed);

/* Looks at what a device's pools have reserved, and its graphs; -1: at the pools of all. */
void es_pools_look(CUdevice device);

/* The program has waited for a device: what it freed before may be the driver's again. Cheap when it freed nothing. */
void es_pools_waited(void);

/* Makes the pools and graphs of a device give back what they keep; true when there was something. */
bool es_pools_trim(CUdevice device);

/* In a forked child. */
void es_pools_reset(void);

#endif
