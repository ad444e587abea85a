#ifndef EDGESHARE_CORE_BLOCKS_H
#define EDGESHARE_CORE_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

/* The device memory that a process has: which block is how large, so that a free can be counted. Not safe against
 * concurrent use. */
struct es_block {
    uint64_t address; /* 0: a free place */
    uint64_t bytes;
    uint32_t device;
    uint32_t kind; /* es_memory_kind */
    void *owner;   /* the context that it ends with; NULL for none */
};

struct es_blocks {
    struct es_block *places; /* mapped; capacity is a power of two, or 0 */
    size_t capacity;
    size_t count;
};

/* Notes a block; returns 0 when there is no memory to note it in. */
int es_blocks_add(struct es_blocks *blocks, struct es_block block);

/* Takes a block out and returns it; its address is 0 when there was none. */
struct es_block es_blocks_remove(struct es_blocks *blocks, uint64_t address);

/* Takes some block of this owner out; its address is 0 when there is none. `place` is 0 at first, and kept from call to
 * call until all are out. */
struct es_block es_blocks_remove_owned(struct es_blocks *blocks, const void *owner, size_t *place);

/* All blocks of an owner are another's from now on. */
void es_blocks_bequeath(struct es_blocks *blocks, const void *owner, void *heir);

/* Forgets all. */
void es_blocks_clear(struct es_blocks *blocks);

#endif
