#ifndef EDGESHARE_ACCOUNT_H
#define EDGESHARE_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/tools/blocks.h"
#include "driver_api.h"

/* This process's account of device memory: what it uses, and what the manager knows of it. A wrapper claims before it
 * asks the driver, then keeps the claim or drops it; so the manager's sum is never less than what is in use, and a
 * refusal is exact. Most claims are taken from the allowance word, and most frees put back into it: no system call. A
 * manager that is away is stood in for by the cap that it last named. Devices are the driver's ordinals. No function here
 * is called, and no lock of it held, across a call of the driver. */

/* What addresses and handles mean: each kind is looked up among its own. */
enum es_block_kind {
    ES_BLOCK_MEMORY, /* an address that a free takes */
    ES_BLOCK_HOST,   /* host memory of an integrated GPU */
    ES_BLOCK_ARRAY,
    ES_BLOCK_MIPMAP,
    ES_BLOCK_EXTERNAL, /* memory of others that was imported */
    ES_BLOCK_LIMIT,    /* heap or buffer of a context, by it and its limit */
    ES_BLOCK_CONTEXT,
    ES_BLOCK_KINDS,
};

struct es_claim {
    uint64_t bytes;
    uint32_t session; /* in which the manager granted it; 0: none did */
    CUdevice device;
    bool counted; /* false: nobody counts, and nothing below does anything */
};

/* Takes a claim's bytes of the device in this place of the allocation: from the allowance, which needs no system call, else
 * by asking the manager, or without one by the cap last known. False: that would pass the cap, as far as nothing more can be
 * given back. */
bool es_account_take(struct es_claim *claim, int index);
bool es_account_take_asked(struct es_claim *claim, int index);

/* The driver refused, or it was given back. */
void es_account_drop(struct es_claim *claim);

/* The driver took it, and it is known by a handle or address until es_account_take_out. `owner`: what it ends with, or
 * NULL. */
void es_account_keep(struct es_claim *claim, enum es_block_kind kind, uint64_t handle, const void *owner);

/* The driver took it, and nothing is there to know it by; ended by es_account_free. */
void es_account_use(struct es_claim *claim);

/* What is known by a handle, which is so no more: another thread may get the same one at once. The block's address is 0
 * when there is none. Then, when the driver has answered: freed or not. */
struct es_block es_account_take_out(enum es_block_kind kind, uint64_t handle);
void es_account_settle(enum es_block_kind kind, struct es_block block, bool freed);

/* Notes a block whose bytes are counted already; false when there is no memory to note it in. */
bool es_account_note(enum es_block_kind kind, struct es_block block);

/* So much is used no more, or more than was claimed is. */
void es_account_free(CUdevice device, uint64_t bytes);
void es_account_add(CUdevice device, uint64_t bytes);

/* An owner ended, and the driver freed what it had. */
void es_account_end_owner(const void *owner);

/* What an owner had goes on as another's. */
void es_account_bequeath(const void *owner, const void *heir);

/* A context was made, or the driver refused; and later: it ended. */
void es_account_keep_context(struct es_claim *claim, CUcontext context);
void es_account_drop_context(struct es_claim *claim);
void es_account_context_ended(CUcontext context);

/* In a forked child: the parent's memory is not here. */
void es_account_reset(void);

#endif
