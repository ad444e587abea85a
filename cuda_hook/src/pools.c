#include "pools.h"

#include <string.h>

#include "devices.h"
#include "gate.h"
#include "log.h"
#include "symbols.h"

enum { POOLS = 64 };

static struct es_lock lock;
static struct es_blocks blocks; /* addresses had from pools; the owner is the pool */

static struct pool {
    CUmemoryPool handle; /* NULL: a free place */
    CUdevice device;
    uint64_t counted;    /* what the account has of it */
    uint32_t entered;    /* allocations within the driver just now */
    uint32_t changes;    /* counts what was counted: a figure from before one is out of date */
} pools[POOLS];

static uint64_t graphs_counted[ES_ORDINALS];
static struct es_blocks backed; /* executable graphs that have their memory */
static bool freed_some;      /* atomic: since a pool was last looked at */
static bool graph_allocates; /* atomic */

/* With the lock held. */
static struct pool *find(CUmemoryPool handle)
{
    for (int i = 0; i < POOLS && handle != NULL; i++) {
        if (pools[i].handle == handle)
            return &pools[i];
    }
    return NULL;
}

void es_pools_note(CUmemoryPool handle, CUdevice device)
{
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

CUmemoryPool es_pools_known(CUmemoryPool handle, CUdevice *device)
{
    const struct pool *pool;

    es_lock_take(&lock);
    pool = find(handle);
    if (pool != NULL)
        *device = pool->device;
    es_lock_give(&lock);
    return pool != NULL ? handle : NULL;
}

static bool attribute(CUmemoryPool pool, CUmemPool_attribute which, uint64_t *bytes)
{
    cuuint64_t value;

    if (ES_DRIVER(cuMemPoolGetAttribute) == NULL || ES_DRIVER(cuMemPoolGetAttribute)(pool, which, &value) != CUDA_SUCCESS)
        return false;
    *bytes = value;
    return true;
}

/* Brings what is counted of a pool in line with what it has reserved; what it has less is free. Returns how much that
 * is. What it has more exists, so it counts, too. */
static uint64_t look_at(CUmemoryPool handle)
{
    uint64_t reserved = 0, less = 0, more = 0;
    struct pool *pool;
    CUdevice device = 0;
    uint32_t changes = 0;

    es_lock_take(&lock);
    pool = find(handle);
    if (pool != NULL)
        changes = pool->changes;
    es_lock_give(&lock);
    if (pool == NULL || !attribute(handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved))
        return 0;
    es_lock_take(&lock);
    pool = find(handle);
    /* While an allocation is on its way, its claim stands for what the pool grows by. */
    if (pool != NULL && pool->changes == changes && pool->entered == 0) {
        device = pool->device;
        less = pool->counted > reserved ? pool->counted - reserved : 0;
        more = pool->counted < reserved ? reserved - pool->counted : 0;
        pool->counted = reserved;
        pool->changes++;
    }
    es_lock_give(&lock);
    es_account_free(device, less);
    es_account_add(device, more);
    return less;
}

/* The same of what a device keeps for graphs. */
static uint64_t look_at_graphs(CUdevice device)
{
    cuuint64_t reserved = 0;
    uint64_t counted;

    if (device < 0 || device >= ES_ORDINALS || !__atomic_load_n(&graph_allocates, __ATOMIC_RELAXED) ||
        ES_DRIVER(cuDeviceGetGraphMemAttribute) == NULL ||
        ES_DRIVER(cuDeviceGetGraphMemAttribute)(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved) != CUDA_SUCCESS)
        return 0;
    counted = __atomic_exchange_n(&graphs_counted[device], reserved, __ATOMIC_ACQ_REL);
    if (counted < reserved)
        es_account_add(device, reserved - counted);
    else
        es_account_free(device, counted - reserved);
    return counted > reserved ? counted - reserved : 0;
}

/* Calls look_at for all pools of a device (-1: of all), after trimming those where it is asked for. */
static uint64_t look_at_all(CUdevice device, bool trim)
{
    uint64_t less = 0;

    for (int i = 0; i < POOLS; i++) {
        CUmemoryPool handle;

        es_lock_take(&lock);
        handle = device < 0 || pools[i].device == device ? pools[i].handle : NULL;
        es_lock_give(&lock);
        if (handle == NULL)
            continue;
        if (trim && ES_DRIVER(cuMemPoolTrimTo) != NULL)
            (void)ES_DRIVER(cuMemPoolTrimTo)(handle, 0);
        less += look_at(handle);
    }
    return less;
}

void es_pools_ended(CUmemoryPool handle)
{
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

bool es_pools_claim(struct es_claim *claim, CUmemoryPool handle, CUdevice device, uint64_t bytes)
{
    uint64_t reserved = 0, used = 0;
    struct pool *pool;

    if (!attribute(handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved) ||
        !attribute(handle, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used))
        used = reserved = 0;
    *claim = (struct es_claim){.device = device};
    /* It fits into what the pool has, if that is in one piece. */
    if (reserved < used || reserved - used < bytes) {
        if (!es_account_claim(claim, device, bytes))
            return false;
    }
    es_lock_take(&lock);
    pool = find(handle);
    if (pool != NULL)
        pool->entered++;
    es_lock_give(&lock);
    return true;
}

/* What a pool has grown by that is not counted yet; `claimed` of it the caller has claimed. */
static uint64_t growth(CUmemoryPool handle, uint64_t claimed)
{
    const struct pool *pool;
    uint64_t reserved = 0, grown = 0;

    if (!attribute(handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved))
        return claimed;
    es_lock_take(&lock);
    pool = find(handle);
    if (pool != NULL && reserved > pool->counted)
        grown = reserved - pool->counted;
    if (pool != NULL && pool->entered > 1 && grown > claimed) {
        /* What others on their way have claimed is theirs to count; what nobody has, the next look finds. */
        grown = claimed;
        __atomic_store_n(&freed_some, true, __ATOMIC_RELAXED);
    }
    es_lock_give(&lock);
    return grown;
}

bool es_pools_allocated(struct es_claim *claim, CUmemoryPool handle, CUdeviceptr address, uint64_t bytes)
{
    const struct es_block block = {address, bytes, (uint32_t)claim->device, ES_BLOCK_MEMORY, handle};
    const CUdevice device = claim->device;
    const uint64_t claimed = claim->counted ? claim->bytes : 0;
    uint64_t grown = growth(handle, claimed);
    struct es_claim rest;
    struct pool *pool;
    bool fits;

    /* Pools grow by large steps. To be refused the rest of one makes them give back what they need not have, this one
     * too: maybe there is no rest then. */
    fits = grown <= claimed || es_account_claim(&rest, device, grown - claimed);
    if (grown > claimed && fits) {
        es_account_use(&rest);
    } else if (grown > claimed) {
        grown = growth(handle, claimed);
        fits = grown <= claimed;
    }
    if (grown < claimed)
        (void)es_account_fit(claim, grown);
    else if (!fits)
        es_account_add(device, grown - claimed);
    es_account_use(claim);
    es_lock_take(&lock);
    if (address != 0)
        (void)es_blocks_add(&blocks, block);
    pool = find(handle);
    if (pool != NULL) {
        pool->counted += grown;
        pool->changes++;
        pool->entered--;
    }
    es_lock_give(&lock);
    return fits;
}

struct es_block es_pools_take_out(CUdeviceptr address)
{
    struct es_block block;

    es_lock_take(&lock);
    block = es_blocks_remove(&blocks, address);
    es_lock_give(&lock);
    return block;
}

void es_pools_settle(struct es_block block, bool freed)
{
    if (block.address == 0)
        return;
    if (freed) {
        __atomic_store_n(&freed_some, true, __ATOMIC_RELAXED);
        return;
    }
    es_lock_take(&lock);
    (void)es_blocks_add(&blocks, block);
    es_lock_give(&lock);
}

void es_pools_look(CUdevice device)
{
    (void)look_at_all(device, false);
    (void)look_at_graphs(device);
}

void es_pools_waited(void)
{
    if (__atomic_load_n(&freed_some, __ATOMIC_RELAXED) && __atomic_exchange_n(&freed_some, false, __ATOMIC_RELAXED) &&
        es_account_counts())
        (void)look_at_all(-1, false);
}

void es_pools_graph_allocates(void)
{
    __atomic_store_n(&graph_allocates, true, __ATOMIC_RELAXED);
}

void es_pools_graph_launched(void)
{
    CUdevice device;

    if (__atomic_load_n(&graph_allocates, __ATOMIC_RELAXED) && es_account_counts() &&
        ES_DRIVER(cuCtxGetDevice)(&device) == CUDA_SUCCESS)
        (void)look_at_graphs(device);
}

void es_pools_graphs_trimmed(void)
{
    es_lock_take(&lock);
    es_blocks_clear(&backed);
    es_lock_give(&lock);
}

static bool has_memory(CUgraphExec graph)
{
    struct es_block block;

    es_lock_take(&lock);
    block = es_blocks_remove(&backed, (uint64_t)(uintptr_t)graph);
    if (block.address != 0)
        (void)es_blocks_add(&backed, block);
    es_lock_give(&lock);
    return block.address != 0;
}

/* An upload makes the driver take what a launch would have taken, and does nothing else. */
bool es_pools_graph_fits(CUgraphExec graph, CUstream stream)
{
    const struct es_block block = {(uint64_t)(uintptr_t)graph, 0, 0, 0, NULL};
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t reserved = 0;
    struct es_claim claim;
    uint64_t counted;
    CUdevice device;

    if (__builtin_expect(!__atomic_load_n(&graph_allocates, __ATOMIC_RELAXED), 1) || !es_account_counts() ||
        has_memory(graph) || ES_DRIVER(cuGraphUpload) == NULL || ES_DRIVER(cuDeviceGetGraphMemAttribute) == NULL ||
        (ES_DRIVER(cuStreamIsCapturing) != NULL &&
         (ES_DRIVER(cuStreamIsCapturing)(stream, &status) != CUDA_SUCCESS ||
          status != CU_STREAM_CAPTURE_STATUS_NONE)) ||
        ES_DRIVER(cuCtxGetDevice)(&device) != CUDA_SUCCESS || device < 0 || device >= ES_ORDINALS)
        return true;
    counted = __atomic_load_n(&graphs_counted[device], __ATOMIC_ACQUIRE);
    if (ES_DRIVER(cuGraphUpload)(graph, stream) != CUDA_SUCCESS ||
        ES_DRIVER(cuDeviceGetGraphMemAttribute)(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved) != CUDA_SUCCESS)
        return true;
    if (reserved > counted) {
        /* Refused, the account makes graphs give back what is not in use, which this is not yet: so nothing is left. */
        if (!es_account_claim(&claim, device, reserved - counted))
            return false;
        es_account_use(&claim);
        (void)__atomic_fetch_add(&graphs_counted[device], reserved - counted, __ATOMIC_ACQ_REL);
    }
    es_lock_take(&lock);
    (void)es_blocks_add(&backed, block);
    es_lock_give(&lock);
    return true;
}

void es_pools_graph_ended(CUgraphExec graph)
{
    es_lock_take(&lock);
    (void)es_blocks_remove(&backed, (uint64_t)(uintptr_t)graph);
    es_lock_give(&lock);
}

bool es_pools_trim(CUdevice device)
{
    uint64_t less = look_at_all(device, true);

    if (__atomic_load_n(&graph_allocates, __ATOMIC_RELAXED) && ES_DRIVER(cuDeviceGraphMemTrim) != NULL) {
        (void)ES_DRIVER(cuDeviceGraphMemTrim)(device);
        es_pools_graphs_trimmed();
        less += look_at_graphs(device);
    }
    return less != 0;
}

void es_pools_reset(void)
{
    lock = (struct es_lock){0};
    es_blocks_clear(&blocks);
    es_blocks_clear(&backed);
    memset(pools, 0, sizeof(pools));
    memset(graphs_counted, 0, sizeof(graphs_counted));
    freed_some = graph_allocates = false;
}
