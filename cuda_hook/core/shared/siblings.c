#include "core/shared/siblings.h"

void es_siblings_use(struct es_siblings_page *page, uint32_t place, int uses) {
    uint32_t turns;

    if (place >= ES_SIBLINGS_MAX)
        return;
    turns = __atomic_load_n(&page->turns[place], __ATOMIC_RELAXED);
    if ((turns & 1) != (uses != 0))
        __atomic_store_n(&page->turns[place], turns + 1, __ATOMIC_SEQ_CST);
}

uint64_t es_siblings_seen(const struct es_siblings_page *page, uint32_t place) {
    const uint32_t places = __atomic_load_n(&page->places, __ATOMIC_ACQUIRE);
    uint64_t sum = 0, uses = __atomic_load_n(&page->nameless, __ATOMIC_ACQUIRE) != 0;

    for (uint32_t i = 0; i < places && i < ES_SIBLINGS_MAX; i++) {
        const uint32_t turns = __atomic_load_n(&page->turns[i], __ATOMIC_SEQ_CST);

        if (i == place)
            continue;
        sum += turns;
        uses |= turns & 1;
    }
    return sum << 1 | uses;
}
