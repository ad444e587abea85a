#include "memory/pools.h"

#include <string.h>

#include "base/log.h"
#include "driver/symbols.h"
#include "memory/amounts.h"
#include "memory/graph_memory.h"
#include "memory/pool_uses.h"

enum { POOLS = 64, TRIES = 16 };

struct es_uses es_pool_uses;
static struct es_lock lock;
static struct es_blocks blocks ES_UNDER(lock); /* addresses had from pools; the owner is the pool */

static struct pool {
    CUmemoryPool handle; /* NULL: a free place */
    CUdevice device;
    uint64_t counted; /* what the account has of it */
    uint32_t entered; /* allocations within the driver just now */
    uint32_t changes; /* counts what was counted: a figure from before one is out of date */
    bool unseen;      /* the last of those within looks again: what each took nobody can tell apart */
} pools[POOLS] ES_UNDER(lock);

/* Atomic: how often something was freed, and the number up to which nothing is left that a pool gives back by itself. It
 * does so when the streams that the frees are in are waited for, which may be long after another was. */
static uint32_t frees, seen_frees;

ES_LOCKED(lock) static struct pool *find(CUmemoryPool handle) {
    for (int i = 0; i < POOLS && handle != NULL; i++) {
        if (pools[i].handle == handle)
            return &pools[i];
    }
    return NULL;
}

void es_pools_note(CUmemoryPool handle, CUdevice device) {
    bool noted;

    es_lock_take(&lock);
    noted = find(handle) != NULL;
    for (int i = 0; i < POOLS && !noted; i++) {
        if (pools[i].handle == NULL) {
            pools[i] = (struct pool){.handle = handle, .device = device};
            noted = true;
        }
    }
    es_lock_give(&lock);
    if (!noted)
        es_log("more than %d memory pools: what one more takes shows as what the driver took by itself", POOLS);
}

CUmemoryPool es_pools_known(CUmemoryPool handle, CUdevice *device) {
    const struct pool *pool;

    es_lock_take(&lock);
    pool = find(handle);
    if (pool != NULL)
        *device = pool->device;
    es_lock_give(&lock);
    return pool != NULL ? handle : NULL;
}

uint64_t es_pools_unused(CUmemoryPool handle) {
    uint64_t reserved = 0, used = 0;
    CUdevice device;
    bool told;

    es_pools_use();
    told = es_pools_known(handle, &device) != NULL &&
           es_pools_attribute(handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved) &&
           es_pools_attribute(handle, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used);
    es_pools_used();
    return told && reserved > used ? reserved - used : 0;
}

/* What came of a look at a pool. */
struct look {
    uint64_t less; /* free again */
    bool over;     /* the pool gives back nothing more by itself */
};

/* Takes what a pool has reserved for what is counted of it, unless that has changed since the figure was asked for: then
 * it is false. */
static bool take_over(CUmemoryPool handle, uint32_t changes, uint64_t reserved, struct look *look) {
    struct pool *pool;
    CUdevice device = 0;
    uint64_t more = 0;
    bool current = true;

    es_lock_take(&lock);
    pool = find(handle);
    if (pool != NULL && pool->entered != 0) {
        /* While an allocation is on its way, its claim stands for what the pool grows by. */
        pool->unseen = true;
        look->over = false;
    } else if (pool != NULL) {
        current = pool->changes == changes;
        if (current) {
            device = pool->device;
            look->less = pool->counted > reserved ? pool->counted - reserved : 0;
            more = pool->counted < reserved ? reserved - pool->counted : 0;
            pool->counted = reserved;
            pool->changes++;
        }
    }
    es_lock_give(&lock);
    es_account_free(device, look->less);
    es_account_add(device, more);
    return current;
}

/* Brings what is counted of a pool in line with what it has reserved; what it has less is free. What it has more exists,
 * so it counts, too. Who is overtaken by another look asks again, as the other may have asked before. In a stretch of uses. */
static struct look look_at(CUmemoryPool handle) {
    struct look look = {.over = true};
    uint64_t reserved = 0, used = 0;
    bool current = false;

    for (int i = 0; i < TRIES && !current; i++) {
        const struct pool *pool;
        uint32_t changes = 0;

        es_lock_take(&lock);
        pool = find(handle);
        if (pool != NULL)
            changes = pool->changes;
        es_lock_give(&lock);
        if (pool == NULL || !es_pools_attribute(handle, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) ||
            !es_pools_attribute(handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved))
            return look;
        look.over = reserved <= used;
        current = take_over(handle, changes, reserved, &look);
    }
    look.over = look.over && current;
    return look;
}

/* Calls look_at for all pools of a device (-1: of all), after trimming those where it is asked for. */
static struct look look_at_all(CUdevice device, bool trim) {
    struct look all = {.over = true};

    es_pools_use();
    for (int i = 0; i < POOLS; i++) {
        CUmemoryPool handle;
        struct look look;

        es_lock_take(&lock);
        handle = device < 0 || pools[i].device == device ? pools[i].handle : NULL;
        es_lock_give(&lock);
        if (handle == NULL)
            continue;
        if (trim && ES_DRIVER(cuMemPoolTrimTo) != NULL)
            (void)ES_DRIVER(cuMemPoolTrimTo)(handle, 0);
        look = look_at(handle);
        all.less += look.less;
        all.over = all.over && look.over;
    }
    es_pools_used();
    return all;
}

void es_pools_ended(CUmemoryPool handle) {
    struct pool ended = {.handle = NULL};
    uint64_t in_use = 0;
    struct es_block block;
    struct pool *pool;
    size_t place = 0;

    es_lock_take(&lock);
    pool = find(handle);
    if (pool != NULL) {
        ended = *pool;
        *pool = (struct pool){.handle = NULL};
        /* What is left of it are plain allocations from now on. */
        while ((block = es_blocks_remove_owned(&blocks, handle, &place)).address != 0) {
            block.owner = NULL;
            if (es_account_note(ES_BLOCK_MEMORY, block))
                in_use += block.bytes;
        }
    }
    es_lock_give(&lock);
    if (ended.counted > in_use)
        es_account_free(ended.device, ended.counted - in_use);
    else
        es_account_add(ended.device, in_use - ended.counted);
}

void es_pools_enter(CUmemoryPool handle) {
    struct pool *pool;

    es_lock_take(&lock);
    pool = find(handle);
    if (pool != NULL)
        pool->entered++;
    es_lock_give(&lock);
}

uint64_t es_pools_growth(CUmemoryPool handle, uint64_t claimed) {
    struct pool *pool;
    uint64_t reserved = 0, grown = 0;
    CUdevice device;
    bool told;

    es_pools_use();
    told = es_pools_known(handle, &device) != NULL && es_pools_attribute(handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved);
    es_pools_used();
    if (!told)
        return claimed;
    es_lock_take(&lock);
    pool = find(handle);
    if (pool != NULL && reserved > pool->counted)
        grown = reserved - pool->counted;
    if (pool != NULL && pool->entered > 1) {
        /* What others on their way have claimed is theirs to count, and the last of them looks. */
        if (grown > claimed)
            grown = claimed;
        pool->unseen = true;
    }
    es_lock_give(&lock);
    return grown;
}

void es_pools_leave(CUmemoryPool handle, struct es_block block, uint64_t grown) {
    struct pool *pool;
    bool unseen = false;

    es_lock_take(&lock);
    if (block.address != 0)
        (void)es_blocks_add(&blocks, block);
    pool = find(handle);
    if (pool != NULL) {
        pool->counted += grown;
        pool->changes++;
        pool->entered--;
        unseen = pool->entered == 0 && pool->unseen;
        pool->unseen = pool->unseen && !unseen;
    }
    es_lock_give(&lock);
    if (unseen) {
        es_pools_use();
        (void)look_at(handle);
        es_pools_used();
    }
}

struct es_block es_pools_take_out(CUdeviceptr address) {
    struct es_block block = {0};

    if (!es_amounts_counts())
        return block;
    es_lock_take(&lock);
    block = es_blocks_remove(&blocks, address);
    es_lock_give(&lock);
    return block;
}

void es_pools_settle(struct es_block block, bool freed) {
    if (freed)
        __atomic_fetch_add(&frees, 1, __ATOMIC_RELEASE);
    if (freed || block.address == 0)
        return;
    es_lock_take(&lock);
    (void)es_blocks_add(&blocks, block);
    es_lock_give(&lock);
}

void es_pools_look(CUdevice device) {
    (void)look_at_all(device, false);
    (void)es_graph_memory_look(device);
}

void es_pools_waited(void) {
    const uint32_t now = __atomic_load_n(&frees, __ATOMIC_ACQUIRE);

    if (__builtin_expect(now == __atomic_load_n(&seen_frees, __ATOMIC_RELAXED), 1) || !es_amounts_counts())
        return;
    /* Only afterwards: meanwhile another that has waited must look, too, as this one may have asked too early. */
    if (look_at_all(-1, false).over)
        __atomic_store_n(&seen_frees, now, __ATOMIC_RELAXED);
}

bool es_pools_trim(CUdevice device) {
    uint64_t less = look_at_all(device, true).less;

    less += es_graph_memory_trim(device);
    return less != 0;
}

ES_UNCHECKED void es_pools_reset(void) {
    es_pool_uses = (struct es_uses){0};
    lock = (struct es_lock){0};
    es_blocks_clear(&blocks);
    memset(pools, 0, sizeof(pools));
    frees = seen_frees = 0;
}
