#include "link/link.h"

#include <stddef.h>

#include "core/tools/clock.h"

struct es_link es_link;
const uint32_t es_word_shut = 0;
const uint32_t es_word_open = ES_GATE_HELD;
const uint32_t *es_link_word = &es_word_shut;

uint64_t es_link_grace_ns(void) { return es_link.config.grace_ms * ES_MS; }

uint64_t es_link_before_ns(uint64_t now_ns) {
    uint64_t free_at_ns;

    if (es_mode_now() != ES_JOINED)
        return 0;
    free_at_ns = __atomic_load_n(&es_link.page->free_at_ns, __ATOMIC_RELAXED);
    return free_at_ns > now_ns ? free_at_ns - now_ns : 0;
}

struct es_used *es_link_used(void) {
    static struct es_used nobodys;

    return es_link.hint == NULL ? &nobodys : &es_link.hint->used;
}

void es_link_submits(uint64_t now_ns) {
    es_used_submit(es_link_used(), now_ns);
    if (es_link.siblings != NULL)
        es_siblings_use(es_link.siblings, es_link.page->place, true);
}

void es_link_drained(uint64_t now_ns) {
    es_used_drain(es_link_used(), now_ns);
    if (es_link.siblings != NULL)
        es_siblings_use(es_link.siblings, es_link.page->place, false);
}

/* es_beside_flags; none where there is no manager. */
static uint32_t beside(void) { return es_mode_now() == ES_JOINED ? __atomic_load_n(&es_link.page->beside, __ATOMIC_RELAXED) : 0; }

bool es_link_others(void) { return (beside() & ES_BESIDE_OTHERS) != 0; }

bool es_link_keeps(void) { return (beside() & (ES_BESIDE_OTHERS | ES_BESIDE_TELLS)) == ES_BESIDE_OTHERS; }

uint64_t es_link_siblings(void) { return es_link.siblings == NULL ? 0 : es_siblings_seen(es_link.siblings, es_link.page->place); }

bool es_link_mixed(uint64_t siblings) {
    const uint64_t now = es_link_siblings();

    return es_link_others() || (now & 1) != 0 || now != siblings;
}

ES_UNCHECKED void es_link_reset(void) {
    es_link = (struct es_link){.page = NULL};
    __atomic_store_n(&es_link_word, &es_word_shut, __ATOMIC_RELEASE);
}
