#include "core/tools/blocks.h"

#include <sys/mman.h>

/* Places from the kernel: malloc may be the program's own, and be the one who asks. */
static struct es_block *take_places(size_t count) {
    void *places = mmap(NULL, count * sizeof(struct es_block), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return places != MAP_FAILED ? places : NULL;
}

static void give_places(struct es_blocks *blocks) {
    if (blocks->places != NULL)
        (void)munmap(blocks->places, blocks->capacity * sizeof(struct es_block));
}

/* Open addressing with linear probing; a removal moves later entries up, so there are no gravestones. */
static size_t home(const struct es_blocks *blocks, uint64_t address) {
    return (size_t)(address * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (blocks->capacity - 1);
}

static size_t place_of(const struct es_blocks *blocks, uint64_t address) {
    size_t place = home(blocks, address);

    while (blocks->places[place].address != 0 && blocks->places[place].address != address)
        place = (place + 1) & (blocks->capacity - 1);
    return place;
}

static int grow(struct es_blocks *blocks) {
    struct es_blocks larger = {.capacity = blocks->capacity != 0 ? blocks->capacity * 2 : 64, .count = blocks->count};

    larger.places = take_places(larger.capacity);
    if (larger.places == NULL)
        return 0;
    for (size_t place = 0; place < blocks->capacity; place++) {
        if (blocks->places[place].address != 0)
            larger.places[place_of(&larger, blocks->places[place].address)] = blocks->places[place];
    }
    give_places(blocks);
    *blocks = larger;
    return 1;
}

int es_blocks_add(struct es_blocks *blocks, struct es_block block) {
    size_t place;

    if (block.address == 0 || (blocks->count >= blocks->capacity / 2 && !grow(blocks)))
        return 0;
    place = place_of(blocks, block.address);
    blocks->count += blocks->places[place].address == 0;
    blocks->places[place] = block;
    return 1;
}

struct es_block es_blocks_remove(struct es_blocks *blocks, uint64_t address) {
    const size_t mask = blocks->capacity - 1;
    struct es_block found = {0};
    size_t hole;

    if (blocks->count == 0 || address == 0)
        return found;
    hole = place_of(blocks, address);
    found = blocks->places[hole];
    if (found.address == 0)
        return found;
    blocks->count--;
    for (size_t place = (hole + 1) & mask; blocks->places[place].address != 0; place = (place + 1) & mask) {
        /* An entry may move up to the hole only when the hole lies on its way from home. */
        if (((place - home(blocks, blocks->places[place].address)) & mask) >= ((place - hole) & mask)) {
            blocks->places[hole] = blocks->places[place];
            hole = place;
        }
    }
    blocks->places[hole].address = 0;
    return found;
}

struct es_block es_blocks_remove_owned(struct es_blocks *blocks, const void *owner, size_t *place) {
    /* A removal may fill the hole with a later entry, so the place is looked at again. An entry that moves from the
     * start of the table to its end was looked at already. */
    for (; *place < blocks->capacity; (*place)++) {
        if (blocks->places[*place].address != 0 && blocks->places[*place].owner == owner)
            return es_blocks_remove(blocks, blocks->places[*place].address);
    }
    return (struct es_block){0};
}

void es_blocks_bequeath(struct es_blocks *blocks, const void *owner, void *heir) {
    for (size_t place = 0; place < blocks->capacity; place++) {
        if (blocks->places[place].address != 0 && blocks->places[place].owner == owner)
            blocks->places[place].owner = heir;
    }
}

void es_blocks_clear(struct es_blocks *blocks) {
    give_places(blocks);
    *blocks = (struct es_blocks){0};
}
