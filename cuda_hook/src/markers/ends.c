#include "markers/ends.h"

#include "backlog/backlog.h"
#include "backlog/submitted.h"
#include "driver/markers.h"
#include "driver/streams.h"
#include "link/link.h"
#include "markers/teach.h"
#include "usage/hint.h"
#include "usage/measured.h"

/* The latest end that was counted, from which the next batch of its context is. */
static CUevent latest ES_UNDER(es_state_lock);
static int latest_context ES_UNDER(es_state_lock) = -1;
static int latest_stream ES_UNDER(es_state_lock) = ES_STREAM_NONE;
static struct es_counted counted ES_UNDER(es_state_lock);

/* All GPU time that is told to the manager comes by here. */
ES_LOCKED(es_state_lock) static void count(uint64_t gpu_ns, uint64_t ended_ns, bool beside) {
    es_measured.gpu_ns += gpu_ns;
    es_used_count(es_link_used(), gpu_ns);
    es_used_idle(es_link_used(), es_gaps_end(&es_measured.gaps, ended_ns, gpu_ns, beside));
}

/* Of all that was submitted, what no end has counted yet. */
ES_LOCKED(es_state_lock) static uint64_t uncounted_ns(void) {
    const uint64_t submitted_ns = es_submitted_ns(), counted_ns = counted.mark_ns + counted.waited_ns;

    return submitted_ns > counted_ns ? submitted_ns - counted_ns : 0;
}

void es_ends_waited(uint64_t used_ns, uint64_t ended_ns, bool beside) {
    const uint64_t left_ns = uncounted_ns();
    const uint64_t gpu_ns = used_ns < left_ns ? used_ns : left_ns;

    count(gpu_ns, ended_ns, beside);
    counted.waited_ns += gpu_ns;
}

/* Of one that was seen to have ended. */
ES_LOCKED(es_state_lock) static void look_beside(struct es_closed *batch) {
    batch->beside = batch->beside || es_link_mixed(batch->siblings);
    /* Of an unknown function any time is better than a guess; that counts for one launch of each. */
    batch->work.beside = batch->beside && (batch->key == 0 || es_costs_find(&es_backlog.costs, batch->key)->samples != 0);
}

void es_ends_pass_over(struct es_closed *batch, uint64_t now_ns) {
    look_beside(batch);
    es_teach_passed_over(batch, now_ns);
    batch->key = 0;
    es_closed_pass_over(batch);
}

void es_ends_over(uint64_t streams, uint64_t now_ns) {
    for (uint32_t i = 1; i < es_closed_count(); i++) {
        struct es_closed *batch = es_closed_at(i);

        if (batch->over || batch->stream == ES_STREAM_NONE || (streams >> batch->stream & 1) == 0)
            continue;
        es_ends_pass_over(batch, now_ns);
    }
}

/* What is counted of one that ran beside others' work. Of what siblings ran an estimate may be all of the time in
 * which both did, so that what is above the time that went by is not the longer launches'. */
ES_LOCKED(es_state_lock) static uint64_t beside_ns(const struct es_closed *batch, const struct es_spent *spent) {
    const bool paused = batch->work.opened_ns > counted.ended_ns;
    const uint64_t from_ns = paused ? batch->work.opened_ns : counted.ended_ns;
    const uint64_t passed_ns = spent->ended_ns > from_ns ? spent->ended_ns - from_ns : 0;
    const uint64_t gpu_ns = es_overlap_together_ns(&es_backlog.overlap, spent->gpu_ns);

    return es_link_siblings() == 0 ? es_spent_beside(&es_backlog.beside, gpu_ns, passed_ns, paused) : gpu_ns;
}

/* The head has ended. */
ES_LOCKED(es_state_lock) static void account(const struct es_closed *batch, const struct es_spent *spent, uint64_t now_ns) {
    if (es_measured.gaps.from_ns == 0 && spent->passed_ns != 0)
        es_gaps_begin(&es_measured.gaps, spent->ended_ns - spent->passed_ns);
    if (batch->end == NULL)
        es_ends_waited(batch->work.cost_ns, spent->ended_ns, batch->beside);
    else
        count(batch->work.beside ? beside_ns(batch, spent) : spent->gpu_ns, spent->ended_ns, batch->beside);
    if (!batch->beside)
        es_overlap_count(&es_backlog.overlap, batch->work.cost_ns, spent->gpu_ns);
    es_teach_ended(batch, spent, latest_stream);
    if (batch->start != NULL && spent->measured && !batch->beside)
        es_measured_burst(spent->gpu_ns);
    es_marker_give(batch->start_context, batch->start);
    if (spent->behind || batch->end == NULL) {
        es_marker_give(batch->context, batch->end);
    } else {
        es_marker_give(latest_context, latest);
        latest = batch->end;
        latest_context = batch->context;
        latest_stream = batch->stream;
        counted.ended_ns = spent->ended_ns;
        counted.no_sooner_ns = spent->no_sooner_ns;
        counted.grant = batch->work.grant;
        counted.marked_ns = batch->work.marked_ns;
        counted.early_ns = spent->early_ns;
    }
    if (batch->end != NULL && batch->work.mark_ns > counted.mark_ns) {
        const uint64_t passed_ns = batch->work.mark_ns - counted.mark_ns;

        counted.mark_ns = batch->work.mark_ns;
        counted.waited_ns -= counted.waited_ns < passed_ns ? counted.waited_ns : passed_ns;
    }
    es_backlog.over_ns += batch->work.cost_ns;
    es_closed_pop(spent->ended_ns);
    counted.rested = es_closed_count() == 0 && es_submitted_ns() == counted.mark_ns;
    es_hint_write(now_ns);
}

void es_ends_head(int64_t start_ns, int64_t after_ns, uint64_t now_ns) {
    struct es_closed *head = es_closed_at(0);
    struct es_spent spent;

    look_beside(head);
    spent = es_spent_by(&head->work, &counted, start_ns, after_ns, now_ns);
    if (after_ns >= 0 && counted.ended_ns + (uint64_t)after_ns > spent.ended_ns)
        es_teach_sooner(counted.ended_ns + (uint64_t)after_ns - spent.ended_ns);
    if (head->awaited_ns != 0 && start_ns >= 0 && !es_link_others())
        es_teach_hand_over(head, start_ns, spent.ended_ns);
    account(head, &spent, now_ns);
}

CUevent es_ends_latest(int context) { return latest_context == context ? latest : NULL; }

bool es_ends_can_let_go(void) { return es_closed_count() == 0 && latest != NULL; }

bool es_ends_let_go(void) {
    if (es_closed_count() != 0)
        return false;
    es_marker_give(latest_context, latest);
    latest = NULL;
    return true;
}

ES_UNCHECKED /* only who collects changes it, and asks */
uint64_t
es_ends_latest_ns(void) {
    return counted.ended_ns;
}

void es_ends_forget(int context) {
    es_closed_forget(context);
    if (latest_context == context) {
        latest = NULL;
        latest_context = -1;
        latest_stream = ES_STREAM_NONE;
    }
}

void es_ends_leave_stream(int stream) {
    es_closed_leave_stream(stream);
    es_teach_leave_stream(stream);
    es_backlog.held_streams &= ~(UINT64_C(1) << stream);
    if (latest_stream == stream)
        latest_stream = ES_STREAM_NONE;
}

ES_UNCHECKED void es_ends_reset(void) {
    es_closed_reset();
    es_teach_reset();
    latest = NULL;
    latest_context = -1;
    latest_stream = ES_STREAM_NONE;
    counted = (struct es_counted){0};
}
