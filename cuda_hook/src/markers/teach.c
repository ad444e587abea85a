#include "markers/teach.h"

#include <string.h>

#include "backlog/backlog.h"
#include "driver/streams.h"
#include "threads/slots.h"
#include "usage/measured.h"

/* The latest end in each stream that was seen, and what had been submitted when its marker was recorded. */
static struct {
    uint64_t ended_ns;
    uint64_t mark_ns;
} latest_of[ES_STREAMS] ES_UNDER(es_state_lock);

/* For how long a launch kept its stream, by the end of all of the batch. It took no longer by itself, and as
 * long where streams run beside each other. Of several threads' batches in one stream one may have begun before the
 * marker of another. */
ES_LOCKED(es_state_lock) static uint64_t in_stream_ns(const struct es_closed *batch, uint64_t ended_ns) {
    const bool follows = batch->stream != ES_STREAM_NONE && latest_of[batch->stream].mark_ns <= batch->work.before_ns;
    const uint64_t before_ns = follows ? latest_of[batch->stream].ended_ns : 0;
    const uint64_t begun_ns = before_ns > batch->work.opened_ns ? before_ns : batch->work.opened_ns;

    return ended_ns > begun_ns ? (ended_ns - begun_ns) / batch->launches : 0;
}

/* How soon it ended, where other streams had work, too. */
ES_LOCKED(es_state_lock) static void judge(const struct es_closed *batch, uint64_t ended_ns) {
    if (!batch->held && !batch->beside && batch->queued.beside_ns != 0 && ended_ns > batch->work.opened_ns)
        es_overlap_judge(&es_backlog.overlap, batch->queued, ended_ns - batch->work.opened_ns);
}

/* Of a batch beside others' work: in most_ns a launch of it was over, whatever else ran. */
ES_LOCKED(es_state_lock) static void learn_beside(const struct es_closed *batch, uint64_t most_ns) {
    if (batch->key != 0 && batch->end != NULL && most_ns != 0)
        es_costs_learn_beside(&es_backlog.costs, batch->key, most_ns);
    else if (batch->key != 0)
        es_costs_miss(&es_backlog.costs, batch->key, 0);
}

/* What the head's time says of its function. */
ES_LOCKED(es_state_lock) static void learn_cost(const struct es_closed *batch, const struct es_spent *spent, int latest_stream) {
    const uint64_t most_ns = in_stream_ns(batch, spent->stream_ended_ns);

    if (batch->beside) {
        learn_beside(batch, spent->teaches && spent->whole ? spent->own_ns / batch->launches : most_ns);
        return;
    }
    if (spent->known)
        es_costs_judge(&es_backlog.costs, spent->longer);
    if (batch->key == 0)
        return;
    if (batch->work.exact && spent->teaches && spent->apart && !spent->whole) {
        /* Others had little in that time by their estimates, and one of all these is wrong. */
        es_costs_learn(&es_backlog.costs, batch->key, spent->own_ns);
        return;
    }
    if (batch->work.exact && spent->teaches) {
        es_costs_learn_exact(&es_backlog.costs, batch->key, spent->own_ns, spent->whole);
        return;
    }
    /* Whatever ran or waited beside it, too, an exact time is the better one; and what waited with its stream tells none. */
    if (batch->work.exact || (batch->work.stalled && !spent->apart) || es_costs_find(&es_backlog.costs, batch->key)->exact != 0) {
        es_costs_miss(&es_backlog.costs, batch->key, 1);
        return;
    }
    if (batch->end != NULL && !batch->held)
        es_costs_bound(&es_backlog.costs, batch->key, most_ns);
    if (spent->teaches && spent->whole && !batch->amid)
        es_costs_find(&es_backlog.costs, batch->key)->clean = true;
    if (es_backlog.overlap.seen && !batch->held && (spent->behind || batch->stream != latest_stream))
        es_costs_learn(&es_backlog.costs, batch->key, most_ns);
    else if (spent->teaches && spent->whole)
        es_costs_learn(&es_backlog.costs, batch->key, spent->own_ns / batch->launches);
    else if (spent->teaches)
        es_costs_learn_part(&es_backlog.costs, batch->key, spent->own_ns / batch->launches, spent->gpu_ns / batch->launches);
    else
        es_costs_miss(&es_backlog.costs, batch->key, batch->amid);
}

ES_LOCKED(es_state_lock) static void came_to(const struct es_closed *batch, uint64_t ended_ns) {
    latest_of[batch->stream].ended_ns = ended_ns;
    latest_of[batch->stream].mark_ns = batch->work.mark_ns;
}

void es_teach_sooner(uint64_t by_ns) {
    for (size_t stream = 0; stream < ES_STREAMS; stream++)
        latest_of[stream].ended_ns -= by_ns < latest_of[stream].ended_ns ? by_ns : latest_of[stream].ended_ns;
}

void es_teach_ended(const struct es_closed *batch, const struct es_spent *spent, int latest_stream) {
    learn_cost(batch, spent, latest_stream);
    if (batch->over || batch->stream == ES_STREAM_NONE)
        return;
    judge(batch, spent->stream_ended_ns);
    came_to(batch, spent->stream_ended_ns);
}

void es_teach_passed_over(const struct es_closed *batch, uint64_t ended_ns) {
    const uint64_t most_ns = in_stream_ns(batch, ended_ns);

    if (batch->beside) {
        learn_beside(batch, most_ns);
    } else if (batch->key != 0 && !batch->held && !batch->work.stalled) {
        es_costs_bound(&es_backlog.costs, batch->key, most_ns);
        if (es_costs_find(&es_backlog.costs, batch->key)->exact == 0)
            es_costs_learn(&es_backlog.costs, batch->key, most_ns);
        else
            es_costs_miss(&es_backlog.costs, batch->key, 1);
    } else if (batch->key != 0) {
        es_costs_miss(&es_backlog.costs, batch->key, 1);
    }
    judge(batch, ended_ns);
    came_to(batch, ended_ns);
}

void es_teach_hand_over(const struct es_closed *batch, int64_t start_ns, uint64_t ended_ns) {
    const uint64_t begun_ns = ended_ns - (uint64_t)start_ns, usual_ns = es_measured.hand_over_ns;
    uint64_t ns = begun_ns > batch->awaited_ns ? begun_ns - batch->awaited_ns : 0;

    /* What another process of the allocation had queued makes it longer, and never shorter. */
    if (batch->beside && usual_ns != 0 && ns >= usual_ns)
        return;
    if (usual_ns != 0 && ns > 2 * usual_ns)
        ns = 2 * usual_ns;
    if (usual_ns != 0)
        ns = (uint64_t)((int64_t)usual_ns + ((int64_t)ns - (int64_t)usual_ns) / 8);
    __atomic_store_n(&es_measured.hand_over_ns, ns, __ATOMIC_RELAXED);
}

void es_teach_leave_stream(int stream) { latest_of[stream].ended_ns = latest_of[stream].mark_ns = 0; }

ES_UNCHECKED void es_teach_reset(void) { memset(latest_of, 0, sizeof(latest_of)); }
