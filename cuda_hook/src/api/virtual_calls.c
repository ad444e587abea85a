#include "api/virtual.h"
#include "api/wrappers.h"
#include "driver/symbols.h"
#include "memory/account.h"
#include "memory/amounts.h"
#include "memory/claims.h"

#include <stdlib.h>

/* Memory that is made, mapped, unmapped and released step by step. It counts from cuMemCreate, on devices alone, until
 * every handle to it is released and the last mapping is gone; address ranges cost nothing. No context is needed. What
 * was imported is its exporter's. */

struct chunk {
    uint64_t bytes;
    CUdevice device;
    uint32_t uses; /* handles not yet released, and mappings */
};

/* The owner of a block is its chunk. A mapping's has the mapping's size; the kind of a handle's says how many more times
 * than once the handle has to be released: retaining it may give the same one out again. */
static struct es_lock lock;
static struct es_blocks handles ES_UNDER(lock);
static struct es_blocks mappings ES_UNDER(lock);

/* One use less. Returns the chunk when that was the last. */
ES_LOCKED(lock) static struct chunk *unuse(struct chunk *chunk) { return --chunk->uses == 0 ? chunk : NULL; }

/* Without it. */
static void end(struct chunk *chunk) {
    if (chunk != NULL)
        es_account_free(chunk->device, chunk->bytes);
    free(chunk);
}

static struct chunk *note(struct es_claim *claim, CUmemGenericAllocationHandle handle) {
    struct chunk *chunk = malloc(sizeof(*chunk));
    bool noted;

    if (chunk == NULL)
        return NULL;
    *chunk = (struct chunk){claim->bytes, claim->device, 1};
    es_lock_take(&lock);
    noted = es_blocks_add(&handles, (struct es_block){handle, claim->bytes, (uint32_t)claim->device, 0, chunk}) != 0;
    es_lock_give(&lock);
    if (noted)
        return chunk;
    free(chunk);
    return NULL;
}

CUresult es_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
                        unsigned long long flags) {
    struct es_claim claim = {.bytes = 0};
    CUresult result;

    ES_REAL_OR_RETURN(cuMemCreate);
    if (handle != NULL && prop != NULL && prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
        !es_claim_take(&claim, prop->location.id, size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = ES_DRIVER(cuMemCreate)(handle, size, prop, flags);
    if (result == CUDA_SUCCESS && claim.counted && note(&claim, *handle) != NULL)
        es_account_use(&claim);
    else
        es_account_drop(&claim);
    return result;
}
ES_EXPORT(cuMemCreate);

CUresult es_cuMemRelease(CUmemGenericAllocationHandle handle) {
    struct chunk *ended = NULL;
    struct es_block block, rest;
    CUresult result;

    ES_REAL_OR_RETURN(cuMemRelease);
    if (!es_amounts_counts())
        return ES_DRIVER(cuMemRelease)(handle);
    /* The last release of a handle is taken out before: the driver may give the same one out again at once. */
    es_lock_take(&lock);
    block = es_blocks_remove(&handles, handle);
    rest = block;
    rest.kind--;
    if (block.kind > 0)
        (void)es_blocks_add(&handles, rest);
    es_lock_give(&lock);
    result = ES_DRIVER(cuMemRelease)(handle);
    if (block.address == 0)
        return result;
    es_lock_take(&lock);
    if (result == CUDA_SUCCESS)
        ended = unuse(block.owner);
    else
        (void)es_blocks_add(&handles, block);
    es_lock_give(&lock);
    end(ended);
    return result;
}
ES_EXPORT(cuMemRelease);

/* The mapping that an address lies in. */
ES_LOCKED(lock) static struct es_block mapping_at(CUdeviceptr address) {
    for (size_t place = 0; place < mappings.capacity; place++) {
        const struct es_block *block = &mappings.places[place];

        if (block->address != 0 && address - block->address < block->bytes)
            return *block;
    }
    return (struct es_block){0};
}

/* A handle was given out once more, to a chunk, or where that is NULL to what it stood for before. */
ES_LOCKED(lock) static void again(CUmemGenericAllocationHandle handle, struct chunk *chunk) {
    struct es_block block = es_blocks_remove(&handles, handle);

    if (block.address != 0)
        block.kind++;
    else if (chunk != NULL)
        block = (struct es_block){handle, chunk->bytes, (uint32_t)chunk->device, 0, chunk};
    if (block.address != 0 && es_blocks_add(&handles, block))
        ((struct chunk *)block.owner)->uses++;
}

CUresult es_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr) {
    CUresult result;

    ES_REAL_OR_RETURN(cuMemRetainAllocationHandle);
    result = ES_DRIVER(cuMemRetainAllocationHandle)(handle, addr);
    if (result == CUDA_SUCCESS && handle != NULL && es_amounts_counts()) {
        es_lock_take(&lock);
        again(*handle, mapping_at((CUdeviceptr)(uintptr_t)addr).owner);
        es_lock_give(&lock);
    }
    return result;
}
ES_EXPORT(cuMemRetainAllocationHandle);

/* Counted where it was made. That may have been here, and the handle the same. */
CUresult es_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle,
                                           CUmemAllocationHandleType shHandleType) {
    CUresult result;

    ES_REAL_OR_RETURN(cuMemImportFromShareableHandle);
    result = ES_DRIVER(cuMemImportFromShareableHandle)(handle, osHandle, shHandleType);
    if (result == CUDA_SUCCESS && handle != NULL && es_amounts_counts()) {
        es_lock_take(&lock);
        again(*handle, NULL);
        es_lock_give(&lock);
    }
    return result;
}
ES_EXPORT(cuMemImportFromShareableHandle);

CUresult es_cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags) {
    struct es_block block;
    CUresult result;

    ES_REAL_OR_RETURN(cuMemMap);
    result = ES_DRIVER(cuMemMap)(ptr, size, offset, handle, flags);
    if (result != CUDA_SUCCESS || !es_amounts_counts())
        return result;
    es_lock_take(&lock);
    block = es_blocks_remove(&handles, handle);
    if (block.address != 0) {
        (void)es_blocks_add(&handles, block);
        if (es_blocks_add(&mappings, (struct es_block){ptr, size, block.device, 0, block.owner}))
            ((struct chunk *)block.owner)->uses++;
    }
    es_lock_give(&lock);
    return result;
}
ES_EXPORT(cuMemMap);

/* The mappings in a range, taken out of the books. */
struct taken {
    struct es_block *blocks;
    size_t count;
};

static bool in_range(const struct es_block *block, CUdeviceptr ptr, size_t size) {
    return block->address != 0 && block->address - ptr < size;
}

/* False when there is no memory to remember them in, and then they stay. */
static bool take_out(CUdeviceptr ptr, size_t size, struct taken *taken) {
    size_t count = 0;

    *taken = (struct taken){NULL, 0};
    es_lock_take(&lock);
    for (size_t place = 0; place < mappings.capacity; place++)
        count += in_range(&mappings.places[place], ptr, size);
    if (count > 0)
        taken->blocks = malloc(count * sizeof(*taken->blocks));
    if (taken->blocks != NULL) {
        for (size_t place = 0; place < mappings.capacity; place++) {
            if (in_range(&mappings.places[place], ptr, size))
                taken->blocks[taken->count++] = mappings.places[place];
        }
        for (size_t i = 0; i < taken->count; i++)
            (void)es_blocks_remove(&mappings, taken->blocks[i].address);
    }
    es_lock_give(&lock);
    return taken->count == count;
}

/* They have ended, or go back into the books where they have not. */
static void settle(struct taken *taken, bool ended) {
    for (size_t i = 0; i < taken->count; i++) {
        struct chunk *over = NULL;

        es_lock_take(&lock);
        if (ended)
            over = unuse(taken->blocks[i].owner);
        else
            (void)es_blocks_add(&mappings, taken->blocks[i]);
        es_lock_give(&lock);
        end(over);
    }
    free(taken->blocks);
}

/* A range holds whole mappings, of which each ends. They are taken out before: another thread may map something there as soon
 * as the driver has ended them. */
CUresult es_cuMemUnmap(CUdeviceptr ptr, size_t size) {
    struct taken taken = {NULL, 0};
    CUresult result;

    ES_REAL_OR_RETURN(cuMemUnmap);
    if (es_amounts_counts() && !take_out(ptr, size, &taken))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = ES_DRIVER(cuMemUnmap)(ptr, size);
    settle(&taken, result == CUDA_SUCCESS);
    return result;
}
ES_EXPORT(cuMemUnmap);

ES_UNCHECKED void es_virtual_reset(void) {
    /* The chunks are left alone: freeing what the parent's other threads were at is not safe in a child. */
    lock = (struct es_lock){0};
    handles = mappings = (struct es_blocks){0};
}
