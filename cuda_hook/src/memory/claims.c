#include "memory/claims.h"

#include "core/shared/record.h"
#include "driver/contexts.h"
#include "driver/symbols.h"
#include "memory/amounts.h"
#include "memory/devices.h"
#include "memory/pools.h"

bool es_claim_take(struct es_claim *claim, CUdevice device, uint64_t bytes) {
    int index;

    *claim = (struct es_claim){.bytes = bytes, .device = device};
    if (es_device_foreign(device))
        return false;
    if (bytes == 0 || !es_amounts_counts() || (index = es_device_index(device)) < 0)
        return true;
    if (bytes > ES_MEMORY_BYTES_MAX)
        return false;
    /* What pools keep for later goes before anything is refused. */
    claim->counted = es_account_take(claim, index) || (es_pools_trim(device) && es_account_take_asked(claim, index));
    return claim->counted;
}

bool es_claim_take_here(struct es_claim *claim, CUcontext *context, uint64_t bytes) {
    CUdevice device;

    *claim = (struct es_claim){.bytes = 0};
    *context = es_context_current();
    if (*context == NULL)
        return true;
    if (!es_device_only(&device) && ES_DRIVER(cuCtxGetDevice)(&device) != CUDA_SUCCESS)
        return true;
    return es_claim_take(claim, device, bytes);
}

bool es_claim_fit(struct es_claim *claim, uint64_t bytes) {
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
    if (!es_claim_take(&rest, claim->device, bytes - claim->bytes))
        return false;
    if (rest.session != claim->session) {
        /* The manager went or came between the two: it is told of the whole when it is kept. */
        es_account_drop(&rest);
        es_account_drop(claim);
        *claim = (struct es_claim){.bytes = bytes, .device = rest.device, .counted = true};
        es_lock_take(&es_amounts_lock);
        es_amounts[claim->device].pending += bytes;
        es_lock_give(&es_amounts_lock);
        return true;
    }
    claim->bytes = bytes;
    return true;
}

bool es_claim_context(struct es_claim *claim, CUdevice device) {
    const int index = es_amounts_counts() ? es_device_index(device) : -1;
    bool granted = true;

    *claim = (struct es_claim){.device = device};
    if (index < 0)
        return true;
    claim->session = es_amounts_ask(index, ES_MEMORY_CONTEXT, 0, &granted);
    if (!granted && es_pools_trim(device))
        claim->session = es_amounts_ask(index, ES_MEMORY_CONTEXT, 0, &granted);
    claim->counted = granted;
    return granted;
}
