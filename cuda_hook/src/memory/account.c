#include "memory/account.h"

#include <errno.h>
#include <string.h>

#include "base/life.h"
#include "base/state.h"
#include "core/allowance.h"
#include "core/clock.h"
#include "driver/symbols.h"
#include "link/greeting.h"
#include "link/joining.h"
#include "link/link.h"
#include "link/session.h"
#include "memory/devices.h"
#include "memory/pools.h"

static struct es_lock lock; /* of all below; never held across a call of the driver */
static struct es_blocks blocks[ES_BLOCK_KINDS];

/* Of one device. */
static struct amount {
    uint64_t used;    /* by this process */
    uint64_t pending; /* within the driver just now, allowed by the cap last known */
    uint64_t known;   /* of `used`: what the manager of this session knows of */
    uint32_t contexts;
    uint32_t contexts_known;
} amounts[ES_ORDINALS];
static uint32_t session; /* that `known` is of */

bool es_account_counts(void)
{
    return es_mode_now() != ES_OUT && es_mode_now() != ES_NEW && !es_life_apart();
}

/* With the lock held: true while there is a manager. One that was just joined knows nothing yet. */
static bool joined(void)
{
    const uint32_t now = __atomic_load_n(&es_link.session, __ATOMIC_ACQUIRE);

    if (now != session) {
        session = now;
        for (int i = 0; i < ES_ORDINALS; i++)
            amounts[i].known = amounts[i].contexts_known = 0;
    }
    return es_mode_now() == ES_JOINED;
}

void es_account_hold(void)
{
    es_lock_take(&lock);
}

void es_account_let(void)
{
    es_lock_give(&lock);
}

/* Is there a manager? One that went away may be back. */
static bool reached(void)
{
    if (es_mode_now() == ES_AWAY || es_mode_now() == ES_UNSHARED)
        (void)es_join_again();
    return es_mode_now() == ES_JOINED;
}

/* With the lock held, so in the session that joined() saw: no other begins meanwhile. A record that the manager does not
 * take is tried again for a second; then the session ends, and its books, which would be wrong. */
static void tell(uint16_t kind, uint32_t memory_kind, uint64_t bytes, int index)
{
    struct es_memory record = {{kind, sizeof(record), 0}, bytes, (uint32_t)index, memory_kind};
    const int error = errno;
    bool sent = false;

    for (int i = 0; i < ES_ANSWER_MS && !sent && es_mode_now() == ES_JOINED; i++) {
        es_lock_take(&es_state_lock);
        sent = es_mode_now() == ES_JOINED && es_session_send(&record);
        es_lock_give(&es_state_lock);
        if (!sent)
            es_progress_wait(__atomic_load_n(&es_progress, __ATOMIC_RELAXED), ES_MS);
    }
    if (!sent)
        es_session_end("it takes no records");
    errno = error;
}

/* Asks the manager. Returns the session in which it answered, or 0 when there is none to ask. */
static uint32_t ask(int index, uint32_t memory_kind, uint64_t bytes, bool *granted)
{
    struct es_reserve record = {
        {ES_RESERVE, sizeof(record), es_session_number()}, bytes, (uint32_t)index, memory_kind};
    struct es_reserved answer;
    const uint32_t answered = reached() ? es_session_ask(&record, &answer, ES_RESERVED) : 0;

    if (answered != 0)
        *granted = answer.granted != 0;
    return answered;
}

/* With the lock held: bytes that the manager counts and nobody uses. */
static void put_back(int index, uint64_t bytes)
{
    if (index < ES_DEVICES_MAX)
        es_allowance_put(es_link.hint, (uint32_t)index, bytes);
    else
        tell(ES_FREED, ES_MEMORY_PLAIN, bytes, index);
}

/* With the lock held: bytes are used no more. What the manager has not heard of yet, it need not hear of. */
static void unuse(CUdevice device, uint64_t bytes)
{
    struct amount *amount = &amounts[device];
    const int index = es_device_index(device);
    uint64_t heard;

    amount->used -= bytes;
    if (!joined() || index < 0)
        return;
    heard = bytes < amount->known ? bytes : amount->known;
    amount->known -= heard;
    if (heard > 0)
        put_back(index, heard);
}

/* With the lock held: bytes are used from now on. Those that no manager granted, or one that is gone, the one that is
 * there now must hear of. */
static void use(CUdevice device, uint64_t bytes, uint32_t granted)
{
    struct amount *amount = &amounts[device];
    const int index = es_device_index(device);

    amount->used += bytes;
    if (!joined() || index < 0)
        return;
    if (granted != session)
        tell(ES_DECLARE, ES_MEMORY_PLAIN, bytes, index);
    amount->known += bytes;
}

/* The quick way: out of the allowance. */
static bool take_allowed(struct es_claim *claim, int index)
{
    bool taken;

    es_lock_take(&lock);
    taken = joined() && index < ES_DEVICES_MAX && es_allowance_take(es_link.hint, (uint32_t)index, claim->bytes);
    claim->session = session;
    es_lock_give(&lock);
    return taken;
}

/* By the manager, or without one by the cap last known. */
static bool take_asked(struct es_claim *claim, int index)
{
    const uint64_t cap = es_link.config.memory_cap_bytes;
    struct amount *amount = &amounts[claim->device];
    bool granted = false;

    claim->session = ask(index, ES_MEMORY_PLAIN, claim->bytes, &granted);
    if (claim->session != 0)
        return granted;
    es_lock_take(&lock);
    granted = cap == 0 || (amount->used + amount->pending <= cap &&
                           claim->bytes <= cap - amount->used - amount->pending);
    if (granted)
        amount->pending += claim->bytes;
    es_lock_give(&lock);
    return granted;
}

bool es_account_claim(struct es_claim *claim, CUdevice device, uint64_t bytes)
{
    int index;

    *claim = (struct es_claim){.bytes = bytes, .device = device};
    if (es_device_foreign(device))
        return false;
    if (bytes == 0 || !es_account_counts() || (index = es_device_index(device)) < 0)
        return true;
    /* What pools keep for later goes before anything is refused. */
    claim->counted = take_allowed(claim, index) || take_asked(claim, index) ||
                     (es_pools_trim(device) && take_asked(claim, index));
    return claim->counted;
}

bool es_account_claim_here(struct es_claim *claim, CUcontext *context, uint64_t bytes)
{
    CUdevice device;

    *claim = (struct es_claim){.bytes = 0};
    if (!es_device_current(&device) || ES_DRIVER(cuCtxGetCurrent)(context) != CUDA_SUCCESS)
        return true;
    return es_account_claim(claim, device, bytes);
}

bool es_account_note(enum es_block_kind kind, struct es_block block)
{
    bool noted;

    es_lock_take(&lock);
    noted = es_blocks_add(&blocks[kind], block) != 0;
    es_lock_give(&lock);
    return noted;
}

/* With the lock held: the claim is over. */
static void close(struct es_claim *claim)
{
    if (claim->session == 0)
        amounts[claim->device].pending -= claim->bytes;
    claim->counted = false;
}

void es_account_drop(struct es_claim *claim)
{
    int index;

    if (!claim->counted)
        return;
    index = es_device_index(claim->device);
    es_lock_take(&lock);
    if (joined() && claim->session == session && index >= 0)
        put_back(index, claim->bytes);
    close(claim);
    es_lock_give(&lock);
}

bool es_account_fit(struct es_claim *claim, uint64_t bytes)
{
    struct es_claim rest;

    if (!claim->counted || bytes == claim->bytes)
        return true;
    if (bytes < claim->bytes) {
        rest = *claim;
        rest.bytes = claim->bytes - bytes;
        claim->bytes = bytes;
        es_account_drop(&rest);
        return true;
    }
    if (!es_account_claim(&rest, claim->device, bytes - claim->bytes))
        return false;
    if (rest.session != claim->session) {
        /* The manager went or came between the two: it is told of the whole when it is kept. */
        es_account_drop(&rest);
        es_account_drop(claim);
        *claim = (struct es_claim){.bytes = bytes, .device = rest.device, .counted = true};
        es_lock_take(&lock);
        amounts[claim->device].pending += bytes;
        es_lock_give(&lock);
        return true;
    }
    claim->bytes = bytes;
    return true;
}

void es_account_keep(struct es_claim *claim, enum es_block_kind kind, uint64_t handle, const void *owner)
{
    const struct es_block block = {handle, claim->bytes, (uint32_t)claim->device, kind, (void *)owner};
    bool noted;

    if (!claim->counted)
        return;
    es_lock_take(&lock);
    noted = es_blocks_add(&blocks[kind], block) != 0;
    if (noted) {
        use(claim->device, claim->bytes, claim->session);
        close(claim);
    }
    es_lock_give(&lock);
    /* Without memory to note it in, its free would not be known either: it shows as what the driver took by itself. */
    es_account_drop(claim);
}

void es_account_use(struct es_claim *claim)
{
    if (!claim->counted)
        return;
    es_lock_take(&lock);
    use(claim->device, claim->bytes, claim->session);
    close(claim);
    es_lock_give(&lock);
}

struct es_block es_account_take_out(enum es_block_kind kind, uint64_t handle)
{
    struct es_block block = {0};

    if (handle == 0 || !es_account_counts())
        return block;
    es_lock_take(&lock);
    block = es_blocks_remove(&blocks[kind], handle);
    es_lock_give(&lock);
    return block;
}

void es_account_settle(enum es_block_kind kind, struct es_block block, bool freed)
{
    if (block.address == 0)
        return;
    es_lock_take(&lock);
    if (!freed)
        (void)es_blocks_add(&blocks[kind], block);
    else
        unuse((CUdevice)block.device, block.bytes);
    es_lock_give(&lock);
}

void es_account_free(CUdevice device, uint64_t bytes)
{
    if (bytes == 0 || !es_account_counts())
        return;
    es_lock_take(&lock);
    unuse(device, bytes);
    es_lock_give(&lock);
}

void es_account_add(CUdevice device, uint64_t bytes)
{
    struct es_claim claim = {.bytes = bytes, .device = device};
    int index;

    if (bytes == 0 || !es_account_counts() || (index = es_device_index(device)) < 0)
        return;
    claim.counted = take_allowed(&claim, index) || take_asked(&claim, index);
    if (claim.counted) {
        es_account_use(&claim);
        return;
    }
    es_lock_take(&lock);
    use(device, bytes, 0);
    es_lock_give(&lock);
}

void es_account_end_owner(const void *owner)
{
    if (owner == NULL || !es_account_counts())
        return;
    es_lock_take(&lock);
    for (int kind = 0; kind < ES_BLOCK_KINDS; kind++) {
        size_t place = 0;
        struct es_block block;

        while ((block = es_blocks_remove_owned(&blocks[kind], owner, &place)).address != 0)
            unuse((CUdevice)block.device, block.bytes);
    }
    es_lock_give(&lock);
}

bool es_account_claim_context(struct es_claim *claim, CUdevice device)
{
    const int index = es_account_counts() ? es_device_index(device) : -1;
    bool granted = true;

    *claim = (struct es_claim){.device = device};
    if (index < 0)
        return true;
    claim->session = ask(index, ES_MEMORY_CONTEXT, 0, &granted);
    if (!granted && es_pools_trim(device))
        claim->session = ask(index, ES_MEMORY_CONTEXT, 0, &granted);
    claim->counted = granted;
    return granted;
}

void es_account_keep_context(struct es_claim *claim, CUcontext context)
{
    const struct es_block block = {(uint64_t)(uintptr_t)context, 0, (uint32_t)claim->device, ES_BLOCK_CONTEXT, NULL};
    struct amount *amount = &amounts[claim->device];

    if (!claim->counted)
        return;
    es_lock_take(&lock);
    if (es_blocks_add(&blocks[ES_BLOCK_CONTEXT], block)) {
        amount->contexts++;
        if (joined()) {
            if (claim->session != session)
                tell(ES_DECLARE, ES_MEMORY_CONTEXT, 0, es_device_index(claim->device));
            amount->contexts_known++;
        }
        claim->counted = false;
    }
    es_lock_give(&lock);
    es_account_drop_context(claim);
}

void es_account_drop_context(struct es_claim *claim)
{
    if (!claim->counted)
        return;
    es_lock_take(&lock);
    if (joined() && claim->session == session)
        tell(ES_FREED, ES_MEMORY_CONTEXT, 0, es_device_index(claim->device));
    claim->counted = false;
    es_lock_give(&lock);
}

void es_account_context_ended(CUcontext context)
{
    const struct es_block block = es_account_take_out(ES_BLOCK_CONTEXT, (uint64_t)(uintptr_t)context);
    struct amount *amount = &amounts[block.device];

    es_account_end_owner(context);
    if (block.address == 0)
        return;
    es_lock_take(&lock);
    amount->contexts--;
    if (joined() && amount->contexts_known > 0) {
        amount->contexts_known--;
        tell(ES_FREED, ES_MEMORY_CONTEXT, 0, es_device_index((CUdevice)block.device));
    }
    es_lock_give(&lock);
}

bool es_account_used(uint32_t index, unsigned long long *bytes)
{
    struct es_memory_query record = {{ES_MEMORY_QUERY, sizeof(record), es_session_number()}, index, 0};
    struct es_memory_info info;

    if (!es_account_counts())
        return false;
    if (reached() && es_session_ask(&record, &info, ES_MEMORY_INFO) != 0) {
        *bytes = info.used_bytes;
        return true;
    }
    *bytes = 0;
    for (CUdevice device = 0; device < ES_ORDINALS; device++) {
        es_lock_take(&lock);
        if (amounts[device].used != 0 && es_device_index(device) == (int)index)
            *bytes += amounts[device].used;
        es_lock_give(&lock);
    }
    return true;
}

void es_account_declare(void)
{
    for (CUdevice device = 0; device < ES_ORDINALS; device++) {
        struct amount *amount = &amounts[device];
        bool any;
        int index;

        es_lock_take(&lock);
        any = joined() && (amount->used > amount->known || amount->contexts > amount->contexts_known);
        es_lock_give(&lock);
        index = any ? es_device_index(device) : -1;
        if (index < 0)
            continue;
        es_lock_take(&lock);
        if (joined()) {
            if (amount->used > amount->known)
                tell(ES_DECLARE, ES_MEMORY_PLAIN, amount->used - amount->known, index);
            amount->known = amount->used;
            for (; amount->contexts_known < amount->contexts; amount->contexts_known++)
                tell(ES_DECLARE, ES_MEMORY_CONTEXT, 0, index);
        }
        es_lock_give(&lock);
    }
}

void es_account_reset(void)
{
    lock = (struct es_lock){0};
    for (int kind = 0; kind < ES_BLOCK_KINDS; kind++)
        es_blocks_clear(&blocks[kind]);
    memset(amounts, 0, sizeof(amounts));
    es_devices_forget();
}
