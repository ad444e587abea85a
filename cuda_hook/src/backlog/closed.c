#include "backlog/closed.h"

#include "backlog/backlog.h"
#include "driver/streams.h"
#include "threads/slots.h"

/* So many are closed at most for each stream, less a few, and a batch that is closed in all of them adds one of each: so the
 * driver has no more events than four for each stream. Of few streams no more are closed than that anyway. */
enum { MARKERS_A_STREAM = 3, MARKERS_SPARE = 16, FEW_MARKERS = 128 };

static struct es_closed queue[ES_CLOSED] ES_UNDER(es_state_lock); /* oldest first */
static uint32_t first ES_UNDER(es_state_lock), count ES_UNDER(es_state_lock);
static uint64_t over_ns ES_UNDER(es_state_lock); /* es_closed_over_ns */

void es_closed_push(struct es_closed batch) {
    queue[(first + count) % ES_CLOSED] = batch;
    count++;
    es_timeline_close(&es_backlog.timeline, batch.work.mark_ns);
}

struct es_closed *es_closed_at(uint32_t place) { return &queue[(first + place) % ES_CLOSED]; }

void es_closed_pop(uint64_t ended_ns) {
    const struct es_closed batch = *es_closed_at(0);

    if (batch.over)
        over_ns -= batch.work.cost_ns;
    first = (first + 1) % ES_CLOSED;
    count--;
    es_timeline_end(&es_backlog.timeline, batch.work.mark_ns, count > 0 ? es_closed_at(0)->work.mark_ns : 0, ended_ns);
}

void es_closed_pass_over(struct es_closed *batch) {
    batch->over = true;
    over_ns += batch->work.cost_ns;
}

uint32_t es_closed_count(void) { return count; }

bool es_closed_full(void) {
    const uint32_t some = MARKERS_A_STREAM * es_streams_count();
    const uint32_t most = some > FEW_MARKERS + MARKERS_SPARE ? some - MARKERS_SPARE : FEW_MARKERS;

    return count >= (most < ES_CLOSED - ES_STREAMS ? most : ES_CLOSED - ES_STREAMS);
}

uint64_t es_closed_over_ns(void) { return over_ns; }

uint64_t es_closed_in_stream_ns(int stream) {
    uint64_t queued_ns = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (!es_closed_at(i)->over && es_closed_at(i)->stream == stream)
            queued_ns += es_closed_at(i)->work.cost_ns;
    }
    return queued_ns;
}

struct es_launches es_closed_launches(int stream) {
    struct es_launches launches = {0, 0};

    for (uint32_t i = 0; i < count; i++) {
        const struct es_closed *batch = es_closed_at(i);

        /* One in several streams stands in each of them, and its cost in the first. */
        if (batch->over || batch->work.cost_ns == 0)
            continue;
        if (batch->stream == stream)
            launches.in_stream += batch->launches;
        else
            launches.beside += batch->launches;
    }
    return launches;
}

uint64_t es_closed_longest_ns(void) {
    uint64_t in_stream_ns[ES_STREAMS] = {0}, longest_ns = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct es_closed *batch = es_closed_at(i);

        if (batch->over || batch->stream == ES_STREAM_NONE)
            continue;
        in_stream_ns[batch->stream] += batch->work.cost_ns;
        if (in_stream_ns[batch->stream] > longest_ns)
            longest_ns = in_stream_ns[batch->stream];
    }
    return longest_ns;
}

uint64_t es_closed_streams(void) {
    uint64_t streams = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (!es_closed_at(i)->over && es_closed_at(i)->stream != ES_STREAM_NONE)
            streams |= UINT64_C(1) << es_closed_at(i)->stream;
    }
    return streams;
}

void es_closed_forget(int context) {
    for (uint32_t i = 0; i < count; i++) {
        struct es_closed *batch = es_closed_at(i);

        if (batch->start_context == context)
            batch->start = NULL;
        if (batch->context == context)
            batch->end = NULL;
    }
}

void es_closed_leave_stream(int stream) {
    for (uint32_t i = 0; i < count; i++) {
        if (es_closed_at(i)->stream == stream)
            es_closed_at(i)->stream = ES_STREAM_NONE;
    }
}

ES_UNCHECKED void es_closed_reset(void) {
    first = count = 0;
    over_ns = 0;
}
