#include <string.h>

#include "state.h"

static void kernel_end(struct client *c) {
    account();
    s.running = -1;
    c->backlog_ns -= c->ring[c->first];
    c->first = (c->first + 1) % RING_MAX;
    c->queued--;
    run_next();
    await_room(c);
    if (!c->queued)
        drained(c);
}

static void happen(const struct event *event) {
    struct client *c = &s.clients[event->program];
    switch ((enum what)event->what) {
    case HOST:
        if (event->generation == c->host_generation)
            host(c);
        break;
    case SUBMIT: submit(c); break;
    case KERNEL_END:
        if (event->generation == s.run_generation)
            kernel_end(c);
        break;
    case SWITCHED:
        s.switching = false;
        if (c->queued)
            start_first_of(event->program);
        else
            run_next();
        break;
    case OPENED:
        if (event->generation != c->gate_generation)
            break;
        c->open = true;
        c->requested = false;
        if (c->host == AT_GATE)
            proceed(c);
        break;
    case MESSAGE:
        if (event->kind == SIM_REQUEST && event->generation != c->gate_generation)
            break;
        tell(event->kind, event->program);
        break;
    case GIVE_BACK:
        if (event->generation == c->host_generation && c->host == THINKING)
            give_back(c);
        break;
    case LOOK:
        if (event->generation == s.look_generation)
            tell(SIM_LOOK, 0);
        break;
    }
}

int64_t sim_run(const struct sim_config *config, const struct sim_program *programs, const int64_t *request_percent, int count,
                int64_t (*decide)(int event, int program, int64_t now_ns), struct sim_page *pages, struct sim_gate *gates,
                struct sim_outcome *outcomes, int64_t *busy_ns) {
    if (count > SIM_PROGRAMS_MAX)
        return -1;
    const struct events none = {s.events.heap, 0, s.events.room};
    memset(&s, 0, sizeof s);
    s.events = none;
    s.config = *config;
    s.count = count;
    s.random = 0x9E3779B97F4A7C15ULL ^ (config->seed * 0xD1342543DE82EF95ULL);
    s.running = s.context = -1;
    s.decide = decide;
    s.pages = pages;
    s.told_busy_ns = busy_ns;
    s.gates = gates;
    s.outcomes = outcomes;
    memset(gates, 0, (size_t)count * sizeof *gates);
    memset(outcomes, 0, (size_t)count * sizeof *outcomes);
    for (int i = 0; i < count; i++) {
        struct client *c = &s.clients[i];
        c->is = programs[i];
        c->request_percent = request_percent[i];
        c->usual_think_ns = config->anticipation_ns / 2;
        c->host = THINKING;
        later(c, between(10 * US, 110 * US));
    }
    if (config->gated)
        tell(SIM_LOOK, 0);
    while (s.events.count && s.events.heap[0].at_ns <= config->run_ns) {
        struct event event = events_next(&s.events);
        s.now_ns = event.at_ns;
        happen(&event);
    }
    s.now_ns = config->run_ns;
    account();
    for (int i = 0; i < count; i++) {
        struct client *c = &s.clients[i];
        if (c->host == AT_GATE)
            pass_gate(c);
        outcomes[i].executed_ns = c->counted_ns;
        outcomes[i].longest_wait_ns = c->longest_wait_ns;
    }
    return s.calls;
}
