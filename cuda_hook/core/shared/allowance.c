#include "core/shared/allowance.h"

/* A hostile owner of the page can make a compare-and-swap fail for as long as it likes: the manager does not try for
 * ever. An honest one is at it with as many threads as it has. */
enum { TRIES = 1000 };

int es_allowance_take(struct es_hint_page *page, uint32_t device, uint64_t bytes) {
    uint64_t *word = &page->allowance_bytes[device];
    uint64_t there = __atomic_load_n(word, __ATOMIC_RELAXED);

    while (there >= bytes) {
        if (__atomic_compare_exchange_n(word, &there, there - bytes, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return 1;
    }
    return 0;
}

void es_allowance_put(struct es_hint_page *page, uint32_t device, uint64_t bytes) {
    (void)__atomic_fetch_add(&page->allowance_bytes[device], bytes, __ATOMIC_ACQ_REL);
}

uint64_t es_allowance_take_back(struct es_hint_page *page, uint32_t device, uint64_t most) {
    uint64_t *word = &page->allowance_bytes[device];
    uint64_t there = __atomic_load_n(word, __ATOMIC_RELAXED);

    for (int i = 0; i < TRIES; i++) {
        const uint64_t taken = there < most ? there : most;

        if (taken == 0)
            return 0;
        if (__atomic_compare_exchange_n(word, &there, there - taken, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return taken;
    }
    return 0;
}

uint64_t es_allowance_standing(const struct es_hint_page *page, uint32_t device) {
    return __atomic_load_n(&page->allowance_bytes[device], __ATOMIC_ACQUIRE);
}
