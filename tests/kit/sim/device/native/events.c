#include "events.h"

#include <stdbool.h>
#include <stdlib.h>

static bool before(const struct event *a, const struct event *b) {
    return a->at_ns < b->at_ns || (a->at_ns == b->at_ns && a->order < b->order);
}

void events_put(struct events *events, struct event event) {
    if (events->count == events->room) {
        events->room = events->room ? 2 * events->room : 1024;
        events->heap = realloc(events->heap, (size_t)events->room * sizeof *events->heap);
        if (!events->heap)
            abort();
    }
    int here = events->count++;
    for (int above; here && before(&event, &events->heap[above = (here - 1) / 2]); here = above)
        events->heap[here] = events->heap[above];
    events->heap[here] = event;
}

struct event events_next(struct events *events) {
    struct event *heap = events->heap, first = heap[0], last = heap[--events->count];
    int here = 0;
    for (int child; (child = 2 * here + 1) < events->count; here = child) {
        if (child + 1 < events->count && before(&heap[child + 1], &heap[child]))
            child++;
        if (!before(&heap[child], &last))
            break;
        heap[here] = heap[child];
    }
    heap[here] = last;
    return first;
}
