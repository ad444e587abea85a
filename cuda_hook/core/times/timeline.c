#include "core/times/timeline.h"

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint64_t since(uint64_t then_ns, uint64_t now_ns) { return now_ns > then_ns ? now_ns - then_ns : 0; }

/* With nothing closed, all that is settled has run; else what runs is the head, and nothing behind it. */
static uint64_t run_at(const struct es_timeline *timeline, uint64_t open_ns, uint64_t now_ns) {
    const uint64_t run_ns = timeline->run_ns + since(timeline->since_ns, now_ns);

    if (timeline->head_ns == 0)
        return least(most(run_ns, timeline->settled_ns), timeline->settled_ns + open_ns);
    return least(run_ns, most(timeline->head_ns, timeline->run_ns));
}

uint64_t es_timeline_queued_ns(const struct es_timeline *timeline, uint64_t open_ns, uint64_t now_ns) {
    return since(run_at(timeline, open_ns, now_ns), timeline->settled_ns + open_ns);
}

uint64_t es_timeline_overdue_ns(const struct es_timeline *timeline, uint64_t now_ns) {
    return timeline->head_ns == 0 ? 0 : since(timeline->since_ns + since(timeline->run_ns, timeline->head_ns), now_ns);
}

void es_timeline_look(struct es_timeline *timeline, uint64_t open_ns, uint64_t now_ns) {
    /* A head has been running since then, and may be overdue. */
    if (timeline->head_ns != 0)
        return;
    timeline->run_ns = run_at(timeline, open_ns, now_ns);
    timeline->since_ns = now_ns;
}

void es_timeline_settle(struct es_timeline *timeline, uint64_t used_ns) { timeline->settled_ns += used_ns; }

void es_timeline_close(struct es_timeline *timeline, uint64_t mark_ns) {
    if (timeline->head_ns != 0)
        return;
    timeline->run_ns = most(timeline->run_ns, timeline->settled_ns);
    timeline->head_ns = mark_ns;
}

void es_timeline_end(struct es_timeline *timeline, uint64_t mark_ns, uint64_t next_ns, uint64_t now_ns) {
    timeline->run_ns = most(mark_ns, timeline->run_ns);
    timeline->since_ns = now_ns;
    timeline->head_ns = next_ns;
}
