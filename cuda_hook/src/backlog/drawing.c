#include "backlog/drawing.h"

#include "backlog/backlog.h"
#include "backlog/submitted.h"
#include "link/link.h"

enum {
    /* Launches that pass singly do so at this distance, and so many times their own length: where others have queued much,
     * what passes must not keep the queue from ever draining. */
    OVERDUE_STEP_NS = 10 * 1000 * 1000,
    OVERDUE_STEP_COSTS = 3,
    /* How long a function's second launch waits for the time of the first. A bound, for a first one that
     * does not end. Simulated: where none waits, seven of 100 random programs fall short of their part, not one,
     * and 15 clients are told over 2 % too much, not six. */
    UNKNOWN_NS = 100 * 1000 * 1000,
    GUESS_NS = 100 * 1000, /* what a function counts for until its first time is known */
};

/* The n-th thread that holds what it has not used yet may draw at least an 8n-th of what is free: the others may never use
 * theirs. So n threads hold at most 1 + (1/2 + … + 1/n) / 8 times the cap between them: 1.5 times it where they are 64. */
enum { LEAST_PART = 8 };

enum {
    YIELD_LOOK_NS = 50 * 1000
}; /* where the queue is to run empty: how soon it is noticed that it has, where nobody says so */

uint64_t es_expected_ns(const struct es_cost *cost) {
    return cost->samples == 0 ? GUESS_NS : es_costs_usual_ns(cost, es_link_others());
}

uint64_t es_draw_singly_ns(uint64_t cost_ns, uint64_t now_ns) {
    const uint64_t next_ns = es_backlog.overdue_pass_ns + OVERDUE_STEP_NS + OVERDUE_STEP_COSTS * cost_ns;

    if (now_ns < next_ns)
        return next_ns - now_ns;
    es_backlog.overdue_pass_ns = now_ns;
    return 0;
}

uint64_t es_draw(const struct es_room *room, uint64_t cost_ns, const struct es_cost *cost, uint64_t queued_ns, uint32_t word,
                 uint64_t now_ns, uint64_t *wait_ns) {
    const uint64_t overdue_ns = es_timeline_overdue_ns(&es_backlog.timeline, now_ns);
    const uint64_t free_ns = queued_ns < room->cap_ns ? room->cap_ns - queued_ns : 0;
    const struct es_unspent others = es_unspent(word);
    const uint64_t least_ns = free_ns / LEAST_PART / (others.threads + 1);

    *wait_ns = 0;
    if (room->yields && overdue_ns <= ES_OVERDUE_NS && !es_submitted_drained()) {
        *wait_ns = queued_ns > YIELD_LOOK_NS ? queued_ns : YIELD_LOOK_NS;
    } else if (cost->samples == 0 && cost->pending_since_ns != 0 && now_ns < cost->pending_since_ns + UNKNOWN_NS) {
        *wait_ns = cost->pending_since_ns + UNKNOWN_NS - now_ns;
    } else if (queued_ns > room->level_ns && overdue_ns <= ES_OVERDUE_NS) {
        *wait_ns = overdue_ns > 0 ? ES_OVERDUE_NS - overdue_ns + 1 : es_room_wait_ns(room, queued_ns);
    } else if (queued_ns > room->level_ns) {
        /* The cap delays, it does not block: what runs may wait for what comes. */
        *wait_ns = es_draw_singly_ns(cost_ns, now_ns);
        return 0;
    }
    return others.ns + least_ns < free_ns ? free_ns - others.ns : least_ns;
}
