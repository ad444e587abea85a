#include "timeline.h"

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t since(uint64_t then_ns, uint64_t now_ns)
{
    return now_ns > then_ns ? now_ns - then_ns : 0;
}

uint64_t es_timeline_backlog_ns(const struct es_timeline *timeline, uint64_t now_ns)
{
    const uint64_t running_ns = timeline->closed_ns != 0 ? timeline->head_ns : timeline->open_ns;

    return timeline->open_ns + timeline->closed_ns - least(since(timeline->head_since_ns, now_ns), running_ns);
}

uint64_t es_timeline_overdue_ns(const struct es_timeline *timeline, uint64_t now_ns)
{
    return timeline->closed_ns == 0 ? 0 : since(timeline->head_since_ns + timeline->head_ns, now_ns);
}

void es_timeline_open(struct es_timeline *timeline, uint64_t drawn_ns, uint64_t now_ns)
{
    if (timeline->open_ns == 0 && timeline->closed_ns == 0)
        timeline->head_since_ns = now_ns;
    timeline->open_ns += drawn_ns;
}

void es_timeline_drop(struct es_timeline *timeline, uint64_t drawn_ns)
{
    timeline->open_ns -= least(drawn_ns, timeline->open_ns);
}

void es_timeline_close(struct es_timeline *timeline, uint64_t drawn_ns, uint64_t used_ns, uint64_t opened_ns, int head)
{
    es_timeline_drop(timeline, drawn_ns);
    if (head) {
        timeline->head_ns = used_ns;
        /* Opened while another one ran, it began when that one ended. */
        if (opened_ns > timeline->head_since_ns)
            timeline->head_since_ns = opened_ns;
    }
    timeline->closed_ns += used_ns;
}

void es_timeline_end(struct es_timeline *timeline, uint64_t next_ns, uint64_t now_ns)
{
    timeline->closed_ns -= least(timeline->head_ns, timeline->closed_ns);
    timeline->head_ns = next_ns;
    timeline->head_since_ns = now_ns;
}
