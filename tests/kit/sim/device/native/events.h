#ifndef SIM_EVENTS_H
#define SIM_EVENTS_H

#include <stdint.h>

/* What is to happen, soonest first, and of what happens at the same time that which was put in first: a heap. */
struct event {
    int64_t at_ns;
    uint64_t order;
    int what, program, kind;
    unsigned generation;
};

struct events {
    struct event *heap;
    int count, room;
};

#pragma GCC visibility push(hidden)

void events_put(struct events *events, struct event event);

/* Takes the first; there is one. */
struct event events_next(struct events *events);

#pragma GCC visibility pop

#endif
