#include "usage/hint.h"

#include "backlog/backlog.h"
#include "backlog/submitted.h"
#include "link/link.h"
#include "threads/slots.h"
#include "usage/measured.h"

int64_t es_hint_error_ns;

bool es_hint_unseen(void) {
    return es_link_siblings() == 0 && es_backlog.over_ns < es_backlog.unseen_ns && !es_submitted_drained();
}

void es_hint_write(uint64_t now_ns) {
    const uint64_t submitted_ns = es_submitted_ns();
    uint64_t backlog_ns;

    if (es_link.hint == NULL)
        return;
    /* What may be submitted without a further word of this counts, too. */
    backlog_ns = es_queued_ns(now_ns) + es_unspent(es_gate_load(es_link.page)).ns;
    __atomic_store_n(&es_link.hint->backlog_ns, backlog_ns, __ATOMIC_RELAXED);
    /* The manager reads it as it calls the grant back. What is found out after that it is told by a record. */
    if ((es_gate_load(es_link.page) & ES_GATE_HELD) != 0) {
        /* Siblings' work may be before what is queued here: then nobody knows. */
        const bool known = (es_link_siblings() & 1) == 0 && !es_hint_unseen();
        const uint64_t ends_at_ns = known ? now_ns + backlog_ns + (uint64_t)es_hint_error_ns : 0;

        __atomic_store_n(&es_link.hint->ends_at_ns, ends_at_ns, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&es_link.hint->launches, es_submitted_launches(), __ATOMIC_RELAXED);
    __atomic_store_n(&es_link.hint->waiting_threads, es_threads.waiting, __ATOMIC_RELAXED);
    es_used_pend(es_link_used(),
                 es_backlog.beside.kept_ns + (submitted_ns > es_backlog.over_ns ? submitted_ns - es_backlog.over_ns : 0));
    __atomic_store_n(&es_link.hint->hand_over_ns, (uint32_t)es_measured.hand_over_ns, __ATOMIC_RELAXED);
}

ES_UNCHECKED void es_hint_reset(void) { es_hint_error_ns = 0; }
