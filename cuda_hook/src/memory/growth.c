#include "memory/growth.h"

#include "driver/streams.h"
#include "driver/symbols.h"
#include "memory/claims.h"
#include "memory/devices.h"
#include "memory/graph_memory.h"
#include "memory/pools.h"

bool es_growth_claim(struct es_claim *claim, CUmemoryPool handle, CUdevice device, uint64_t bytes) {
    *claim = (struct es_claim){.device = device};
    /* What fits into what the pool has, if that is in one piece, need not be claimed. */
    if (es_pools_unused(handle) < bytes && !es_claim_take(claim, device, bytes))
        return false;
    es_pools_enter(handle);
    return true;
}

bool es_growth_allocated(struct es_claim *claim, CUmemoryPool handle, CUdeviceptr address, uint64_t bytes) {
    const struct es_block block = {address, bytes, (uint32_t)claim->device, ES_BLOCK_MEMORY, handle};
    const CUdevice device = claim->device;
    const uint64_t claimed = claim->counted ? claim->bytes : 0;
    uint64_t grown = es_pools_growth(handle, claimed);
    struct es_claim rest;
    bool fits;

    /* Pools grow by large steps. To be refused the rest of one makes them give back what they need not have, this one
     * too: maybe there is no rest then. */
    fits = grown <= claimed || es_claim_take(&rest, device, grown - claimed);
    if (grown > claimed && fits) {
        es_account_use(&rest);
    } else if (grown > claimed) {
        grown = es_pools_growth(handle, claimed);
        fits = grown <= claimed;
    }
    if (grown < claimed)
        (void)es_claim_fit(claim, grown);
    else if (!fits)
        es_account_add(device, grown - claimed);
    es_account_use(claim);
    es_pools_leave(handle, block, grown);
    return fits;
}

/* An upload makes the driver take what a launch would have taken, and does nothing else. */
bool es_growth_graph_fits(CUgraphExec graph, CUstream stream) {
    uint64_t reserved = 0, before;
    struct es_claim claim;
    CUdevice device;

    if (!es_graph_memory_wanted(graph) || ES_DRIVER(cuGraphUpload) == NULL || ES_DRIVER(cuDeviceGetGraphMemAttribute) == NULL ||
        !es_device_current(&device) || device < 0 || device >= ES_ORDINALS || es_stream_capturing(stream))
        return true;
    before = es_graph_memory_counted(device);
    if (ES_DRIVER(cuGraphUpload)(graph, stream) != CUDA_SUCCESS || !es_graph_memory_reserved(device, &reserved))
        return true;
    if (reserved > before) {
        /* Refused, the claim makes graphs give back what is not in use, which this is not yet: so nothing is left. */
        if (!es_claim_take(&claim, device, reserved - before))
            return false;
        es_account_use(&claim);
        es_graph_memory_grew(device, reserved - before);
    }
    es_graph_memory_backed(graph);
    return true;
}
