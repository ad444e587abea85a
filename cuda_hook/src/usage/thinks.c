#include "usage/thinks.h"

#include "base/state.h"
#include "core/tools/clock.h"
#include "link/link.h"
#include "usage/measured.h"

struct es_thinks es_thinks;

/* Twice the longest hand-over that the manager believes in: a tenth of a slice of 5 ms (sharemgr/node/turns/hand_overs.py). */
enum { TO_AND_FRO_MOST_NS = 1000 * 1000 };

uint64_t es_thinks_most_ns(void) {
    const uint64_t told_ns = __atomic_load_n(&es_link.anticipation_ns, __ATOMIC_RELAXED);
    const uint64_t ns = 2 * __atomic_load_n(&es_measured.hand_over_ns, __ATOMIC_RELAXED);

    if (told_ns == 0 || ns <= told_ns)
        return told_ns;
    return ns < TO_AND_FRO_MOST_NS ? ns : TO_AND_FRO_MOST_NS;
}

void es_thinks_return(void) {
    const uint64_t most_ns = 4 * es_thinks_most_ns(); /* one long pause must not count for many short ones */
    uint64_t think_ns;

    es_lock_take(&es_state_lock);
    if (es_thinks.idle_since_ns == 0) {
        es_lock_give(&es_state_lock);
        return;
    }
    think_ns = es_now_ns() - es_thinks.idle_since_ns;
    if (think_ns > most_ns)
        think_ns = most_ns;
    if (es_thinks.seen > 0)
        think_ns = (uint64_t)((int64_t)es_thinks.usual_ns + ((int64_t)think_ns - (int64_t)es_thinks.usual_ns) / 4);
    es_thinks.seen += es_thinks.seen < UINT32_MAX;
    __atomic_store_n(&es_thinks.usual_ns, think_ns, __ATOMIC_RELAXED);
    es_thinks.idle_since_ns = 0;
    es_lock_give(&es_state_lock);
}

uint64_t es_thinks_patience_ns(bool contended) {
    const uint64_t most_ns = es_thinks_most_ns();

    if (!contended || es_link_keeps())
        return ES_IDLE_NS;
    if (es_thinks.seen == 0)
        return most_ns;
    if (es_thinks.usual_ns > most_ns)
        return 0;
    return es_thinks.usual_ns * 2 < most_ns ? es_thinks.usual_ns * 2 : most_ns;
}

ES_UNCHECKED void es_thinks_reset(void) { es_thinks = (struct es_thinks){.seen = 0}; }
