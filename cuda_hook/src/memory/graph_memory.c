#include "memory/graph_memory.h"

#include <string.h>

#include "core/shared/record.h"
#include "driver/symbols.h"
#include "memory/account.h"
#include "memory/amounts.h"
#include "memory/devices.h"

static struct es_lock lock;
static struct es_blocks backed ES_UNDER(lock); /* executable graphs that have their memory */

enum { TRIES = 16 };

/* What the account has of each device's. */
static struct {
    uint64_t bytes;
    uint32_t changes; /* a figure from before one is out of date */
} counted[ES_ORDINALS] ES_UNDER(lock);
static bool allocates; /* atomic: some graph does */

static uint32_t changes_of(CUdevice device) {
    uint32_t changes;

    es_lock_take(&lock);
    changes = counted[device].changes;
    es_lock_give(&lock);
    return changes;
}

bool es_graph_memory_reserved(CUdevice device, uint64_t *bytes) {
    cuuint64_t value;

    if (ES_DRIVER(cuDeviceGetGraphMemAttribute)(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &value) != CUDA_SUCCESS ||
        value > ES_MEMORY_BYTES_MAX)
        return false;
    *bytes = value;
    return true;
}

/* Of two looks at a time the one that asked first may come last: it asks again. */
uint64_t es_graph_memory_look(CUdevice device) {
    uint64_t reserved = 0, before = 0;
    bool current = false;

    if (device < 0 || device >= ES_ORDINALS || !__atomic_load_n(&allocates, __ATOMIC_RELAXED) ||
        ES_DRIVER(cuDeviceGetGraphMemAttribute) == NULL)
        return 0;
    for (int i = 0; i < TRIES && !current; i++) {
        const uint32_t changes = changes_of(device);

        if (!es_graph_memory_reserved(device, &reserved))
            return 0;
        es_lock_take(&lock);
        current = counted[device].changes == changes;
        if (current) {
            before = counted[device].bytes;
            counted[device].bytes = reserved;
            counted[device].changes++;
        }
        es_lock_give(&lock);
    }
    if (!current)
        return 0;
    if (before < reserved)
        es_account_add(device, reserved - before);
    else
        es_account_free(device, before - reserved);
    return before > reserved ? before - reserved : 0;
}

void es_graph_memory_expect(void) { __atomic_store_n(&allocates, true, __ATOMIC_RELAXED); }

void es_graph_memory_launched(void) {
    CUdevice device;

    if (__atomic_load_n(&allocates, __ATOMIC_RELAXED) && es_amounts_counts() && es_device_current(&device))
        (void)es_graph_memory_look(device);
}

void es_graph_memory_trimmed(void) {
    es_lock_take(&lock);
    es_blocks_clear(&backed);
    es_lock_give(&lock);
}

bool es_graph_memory_wanted(CUgraphExec graph) {
    struct es_block block;

    if (__builtin_expect(!__atomic_load_n(&allocates, __ATOMIC_RELAXED), 1) || !es_amounts_counts())
        return false;
    es_lock_take(&lock);
    block = es_blocks_remove(&backed, (uint64_t)(uintptr_t)graph);
    if (block.address != 0)
        (void)es_blocks_add(&backed, block);
    es_lock_give(&lock);
    return block.address == 0;
}

uint64_t es_graph_memory_counted(CUdevice device) {
    uint64_t bytes;

    es_lock_take(&lock);
    bytes = counted[device].bytes;
    es_lock_give(&lock);
    return bytes;
}

void es_graph_memory_grew(CUdevice device, uint64_t bytes) {
    es_lock_take(&lock);
    counted[device].bytes += bytes;
    counted[device].changes++;
    es_lock_give(&lock);
    /* Another that was uploaded meanwhile may have been claimed twice. */
    (void)es_graph_memory_look(device);
}

void es_graph_memory_backed(CUgraphExec graph) {
    const struct es_block block = {(uint64_t)(uintptr_t)graph, 0, 0, 0, NULL};

    es_lock_take(&lock);
    (void)es_blocks_add(&backed, block);
    es_lock_give(&lock);
}

void es_graph_memory_ended(CUgraphExec graph) {
    es_lock_take(&lock);
    (void)es_blocks_remove(&backed, (uint64_t)(uintptr_t)graph);
    es_lock_give(&lock);
}

uint64_t es_graph_memory_trim(CUdevice device) {
    if (!__atomic_load_n(&allocates, __ATOMIC_RELAXED) || ES_DRIVER(cuDeviceGraphMemTrim) == NULL)
        return 0;
    (void)ES_DRIVER(cuDeviceGraphMemTrim)(device);
    es_graph_memory_trimmed();
    return es_graph_memory_look(device);
}

ES_UNCHECKED void es_graph_memory_reset(void) {
    lock = (struct es_lock){0};
    es_blocks_clear(&backed);
    memset(counted, 0, sizeof(counted));
    allocates = false;
}
