#include "core/tools/absence.h"

#include "core/tools/clock.h"

void es_absence_begin(struct es_absence *absence, uint64_t now_ns, uint64_t grace_ns) {
    const uint64_t least_ns = ES_SETTLED_MS_LEAST * ES_MS;
    const uint64_t lasts_ns = grace_ns > least_ns ? grace_ns : least_ns;
    uint64_t pause_ns = 0;

    if (absence->since_ns == 0 || (absence->joined_ns != 0 && now_ns - absence->joined_ns >= lasts_ns)) {
        absence->since_ns = now_ns;
        absence->cut_short = 0;
    } else if (absence->cut_short <= ES_TRY_DOUBLINGS) {
        absence->cut_short++;
    }
    if (absence->cut_short > 0)
        pause_ns = (uint64_t)ES_TRY_NS << (absence->cut_short - 1);
    __atomic_store_n(&absence->next_try_ns, now_ns + pause_ns, __ATOMIC_RELAXED);
}

void es_absence_joined(struct es_absence *absence, uint64_t now_ns) {
    absence->joined_ns = now_ns;
    absence->refusals = 0;
}

void es_absence_put_off(struct es_absence *absence, uint64_t now_ns) {
    absence->since_ns = absence->heard_ns = now_ns;
    absence->refusals = 0;
}

uint64_t es_absence_refused(struct es_absence *absence, uint64_t now_ns) {
    const uint64_t pause_ns = (uint64_t)ES_TRY_NS << absence->refusals;

    if (absence->refusals < ES_REFUSED_DOUBLINGS)
        absence->refusals++;
    absence->since_ns = absence->heard_ns = now_ns + pause_ns;
    __atomic_store_n(&absence->next_try_ns, absence->heard_ns, __ATOMIC_RELAXED);
    return pause_ns;
}

int es_absence_over(const struct es_absence *absence, uint64_t now_ns, uint64_t grace_ns) {
    if (absence->heard_ns != 0 && now_ns < absence->heard_ns + (uint64_t)ES_HEARD_MS_LEAST * ES_MS)
        return 0;
    return now_ns >= absence->since_ns + grace_ns;
}
