#include "memory/account.h"

#include <string.h>

#include "core/shared/allowance.h"
#include "link/link.h"
#include "memory/amounts.h"
#include "memory/devices.h"

static struct es_blocks blocks[ES_BLOCK_KINDS] ES_UNDER(es_amounts_lock); /* under es_amounts_lock */

/* The quick way: out of the allowance. */
static bool take_allowed(struct es_claim *claim, int index) {
    bool taken;

    es_lock_take(&es_amounts_lock);
    taken = es_amounts_joined() && index < ES_DEVICES_MAX && es_allowance_take(es_link.hint, (uint32_t)index, claim->bytes);
    claim->session = es_amounts_session;
    es_lock_give(&es_amounts_lock);
    return taken;
}

bool es_account_take_asked(struct es_claim *claim, int index) {
    const uint64_t cap = es_link.config.memory_cap_bytes;
    struct es_amount *amount = &es_amounts[claim->device];
    bool granted = false;

    claim->session = es_amounts_ask(index, ES_MEMORY_PLAIN, claim->bytes, &granted);
    if (claim->session != 0)
        return granted;
    es_lock_take(&es_amounts_lock);
    granted = cap == 0 || (amount->used + amount->pending <= cap && claim->bytes <= cap - amount->used - amount->pending);
    if (granted)
        amount->pending += claim->bytes;
    es_lock_give(&es_amounts_lock);
    return granted;
}

bool es_account_take(struct es_claim *claim, int index) {
    return take_allowed(claim, index) || es_account_take_asked(claim, index);
}

bool es_account_note(enum es_block_kind kind, struct es_block block) {
    bool noted;

    es_lock_take(&es_amounts_lock);
    noted = es_blocks_add(&blocks[kind], block) != 0;
    es_lock_give(&es_amounts_lock);
    return noted;
}

/* The claim is over. */
ES_LOCKED(es_amounts_lock) static void close(struct es_claim *claim) {
    if (claim->session == 0)
        es_amounts[claim->device].pending -= claim->bytes;
    claim->counted = false;
}

void es_account_drop(struct es_claim *claim) {
    int index;

    if (!claim->counted)
        return;
    index = es_device_index(claim->device);
    es_lock_take(&es_amounts_lock);
    if (es_amounts_joined() && claim->session == es_amounts_session && index >= 0)
        es_amounts_put_back(index, claim->bytes);
    close(claim);
    es_lock_give(&es_amounts_lock);
}

void es_account_keep(struct es_claim *claim, enum es_block_kind kind, uint64_t handle, const void *owner) {
    const struct es_block block = {handle, claim->bytes, (uint32_t)claim->device, kind, (void *)owner};
    bool noted;

    if (!claim->counted)
        return;
    es_lock_take(&es_amounts_lock);
    noted = es_blocks_add(&blocks[kind], block) != 0;
    if (noted) {
        es_amounts_use(claim->device, claim->bytes, claim->session);
        close(claim);
    }
    es_lock_give(&es_amounts_lock);
    /* Without memory to note it in, its free would not be known either: it shows as what the driver took by itself. */
    es_account_drop(claim);
}

void es_account_use(struct es_claim *claim) {
    if (!claim->counted)
        return;
    es_lock_take(&es_amounts_lock);
    es_amounts_use(claim->device, claim->bytes, claim->session);
    close(claim);
    es_lock_give(&es_amounts_lock);
}

struct es_block es_account_take_out(enum es_block_kind kind, uint64_t handle) {
    struct es_block block = {0};

    if (handle == 0 || !es_amounts_counts())
        return block;
    es_lock_take(&es_amounts_lock);
    block = es_blocks_remove(&blocks[kind], handle);
    es_lock_give(&es_amounts_lock);
    return block;
}

void es_account_settle(enum es_block_kind kind, struct es_block block, bool freed) {
    if (block.address == 0)
        return;
    es_lock_take(&es_amounts_lock);
    if (!freed)
        (void)es_blocks_add(&blocks[kind], block);
    else
        es_amounts_unuse((CUdevice)block.device, block.bytes);
    es_lock_give(&es_amounts_lock);
}

void es_account_free(CUdevice device, uint64_t bytes) {
    if (bytes == 0 || !es_amounts_counts())
        return;
    es_lock_take(&es_amounts_lock);
    es_amounts_unuse(device, bytes);
    es_lock_give(&es_amounts_lock);
}

void es_account_add(CUdevice device, uint64_t bytes) {
    struct es_claim claim = {.bytes = bytes, .device = device};
    int index;

    if (bytes == 0 || !es_amounts_counts() || (index = es_device_index(device)) < 0)
        return;
    claim.counted = es_account_take(&claim, index);
    if (claim.counted) {
        es_account_use(&claim);
        return;
    }
    es_lock_take(&es_amounts_lock);
    es_amounts_use(device, bytes, 0);
    es_lock_give(&es_amounts_lock);
}

void es_account_end_owner(const void *owner) {
    if (owner == NULL || !es_amounts_counts())
        return;
    es_lock_take(&es_amounts_lock);
    for (int kind = 0; kind < ES_BLOCK_KINDS; kind++) {
        size_t place = 0;
        struct es_block block;

        while ((block = es_blocks_remove_owned(&blocks[kind], owner, &place)).address != 0)
            es_amounts_unuse((CUdevice)block.device, block.bytes);
    }
    es_lock_give(&es_amounts_lock);
}

void es_account_bequeath(const void *owner, const void *heir) {
    if (owner == NULL || !es_amounts_counts())
        return;
    es_lock_take(&es_amounts_lock);
    for (int kind = 0; kind < ES_BLOCK_KINDS; kind++)
        es_blocks_bequeath(&blocks[kind], owner, (void *)heir);
    es_lock_give(&es_amounts_lock);
}

void es_account_keep_context(struct es_claim *claim, CUcontext context) {
    const struct es_block block = {(uint64_t)(uintptr_t)context, 0, (uint32_t)claim->device, ES_BLOCK_CONTEXT, NULL};
    struct es_amount *amount = &es_amounts[claim->device];

    if (!claim->counted)
        return;
    es_lock_take(&es_amounts_lock);
    if (es_blocks_add(&blocks[ES_BLOCK_CONTEXT], block)) {
        amount->contexts++;
        if (es_amounts_joined()) {
            if (claim->session != es_amounts_session)
                es_amounts_tell(ES_DECLARE, ES_MEMORY_CONTEXT, 0, es_device_index(claim->device));
            amount->contexts_known++;
        }
        claim->counted = false;
    }
    es_lock_give(&es_amounts_lock);
    es_account_drop_context(claim);
}

void es_account_drop_context(struct es_claim *claim) {
    if (!claim->counted)
        return;
    es_lock_take(&es_amounts_lock);
    if (es_amounts_joined() && claim->session == es_amounts_session)
        es_amounts_tell(ES_FREED, ES_MEMORY_CONTEXT, 0, es_device_index(claim->device));
    claim->counted = false;
    es_lock_give(&es_amounts_lock);
}

void es_account_context_ended(CUcontext context) {
    const struct es_block block = es_account_take_out(ES_BLOCK_CONTEXT, (uint64_t)(uintptr_t)context);
    struct es_amount *amount = &es_amounts[block.device];

    es_account_end_owner(context);
    if (block.address == 0)
        return;
    es_lock_take(&es_amounts_lock);
    amount->contexts--;
    if (es_amounts_joined() && amount->contexts_known > 0) {
        amount->contexts_known--;
        es_amounts_tell(ES_FREED, ES_MEMORY_CONTEXT, 0, es_device_index((CUdevice)block.device));
    }
    es_lock_give(&es_amounts_lock);
}

ES_UNCHECKED void es_account_reset(void) {
    for (int kind = 0; kind < ES_BLOCK_KINDS; kind++)
        es_blocks_clear(&blocks[kind]);
    es_amounts_reset();
}
