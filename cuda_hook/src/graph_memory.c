#include "graph_memory.h"

#include <string.h>

#include "account.h"
#include "devices.h"
#include "gate.h"
#include "symbols.h"

static struct es_lock lock;
static struct es_blocks backed; /* executable graphs that have their memory */

static uint64_t counted_bytes[ES_ORDINALS]; /* atomic: what the account has of each device's */
static bool allocates; /* atomic: some graph does */

uint64_t es_graph_memory_look(CUdevice device)
{
    cuuint64_t reserved = 0;
    uint64_t counted;

    if (device < 0 || device >= ES_ORDINALS || !__atomic_load_n(&allocates, __ATOMIC_RELAXED) ||
        ES_DRIVER(cuDeviceGetGraphMemAttribute) == NULL ||
        ES_DRIVER(cuDeviceGetGraphMemAttribute)(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved) != CUDA_SUCCESS)
        return 0;
    counted = __atomic_exchange_n(&counted_bytes[device], reserved, __ATOMIC_ACQ_REL);
    if (counted < reserved)
        es_account_add(device, reserved - counted);
    else
        es_account_free(device, counted - reserved);
    return counted > reserved ? counted - reserved : 0;
}

void es_graph_memory_expect(void)
{
    __atomic_store_n(&allocates, true, __ATOMIC_RELAXED);
}

void es_graph_memory_launched(void)
{
    CUdevice device;

    if (__atomic_load_n(&allocates, __ATOMIC_RELAXED) && es_account_counts() &&
        ES_DRIVER(cuCtxGetDevice)(&device) == CUDA_SUCCESS)
        (void)es_graph_memory_look(device);
}

void es_graph_memory_trimmed(void)
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
bool es_graph_memory_fits(CUgraphExec graph, CUstream stream)
{
    const struct es_block block = {(uint64_t)(uintptr_t)graph, 0, 0, 0, NULL};
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t reserved = 0;
    struct es_claim claim;
    uint64_t counted;
    CUdevice device;

    if (__builtin_expect(!__atomic_load_n(&allocates, __ATOMIC_RELAXED), 1) || !es_account_counts() ||
        has_memory(graph) || ES_DRIVER(cuGraphUpload) == NULL || ES_DRIVER(cuDeviceGetGraphMemAttribute) == NULL ||
        (ES_DRIVER(cuStreamIsCapturing) != NULL &&
         (ES_DRIVER(cuStreamIsCapturing)(stream, &status) != CUDA_SUCCESS ||
          status != CU_STREAM_CAPTURE_STATUS_NONE)) ||
        ES_DRIVER(cuCtxGetDevice)(&device) != CUDA_SUCCESS || device < 0 || device >= ES_ORDINALS)
        return true;
    counted = __atomic_load_n(&counted_bytes[device], __ATOMIC_ACQUIRE);
    if (ES_DRIVER(cuGraphUpload)(graph, stream) != CUDA_SUCCESS ||
        ES_DRIVER(cuDeviceGetGraphMemAttribute)(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved) != CUDA_SUCCESS)
        return true;
    if (reserved > counted) {
        /* Refused, the account makes graphs give back what is not in use, which this is not yet: so nothing is left. */
        if (!es_account_claim(&claim, device, reserved - counted))
            return false;
        es_account_use(&claim);
        (void)__atomic_fetch_add(&counted_bytes[device], reserved - counted, __ATOMIC_ACQ_REL);
    }
    es_lock_take(&lock);
    (void)es_blocks_add(&backed, block);
    es_lock_give(&lock);
    return true;
}

void es_graph_memory_ended(CUgraphExec graph)
{
    es_lock_take(&lock);
    (void)es_blocks_remove(&backed, (uint64_t)(uintptr_t)graph);
    es_lock_give(&lock);
}

uint64_t es_graph_memory_trim(CUdevice device)
{
    if (!__atomic_load_n(&allocates, __ATOMIC_RELAXED) || ES_DRIVER(cuDeviceGraphMemTrim) == NULL)
        return 0;
    (void)ES_DRIVER(cuDeviceGraphMemTrim)(device);
    es_graph_memory_trimmed();
    return es_graph_memory_look(device);
}

void es_graph_memory_reset(void)
{
    lock = (struct es_lock){0};
    es_blocks_clear(&backed);
    memset(counted_bytes, 0, sizeof(counted_bytes));
    allocates = false;
}
