#include "state.h"

#define LAUNCH_NS (9 * US / 2) /* one launch on the host */

void pass_gate(struct client *c) {
    if (!c->queued)
        c->idle_from_ns = s.now_ns;
    if (c->within && s.now_ns > s.config.settle_ns)
        c->longest_wait_ns = most(c->longest_wait_ns, s.now_ns - c->wait_from_ns);
}

void proceed(struct client *c) {
    if (s.config.gated && !c->open) {
        if (c->host == AT_GATE)
            return;
        if (!c->queued)
            c->idle_ns += s.now_ns - c->idle_from_ns;
        c->host = AT_GATE;
        c->wait_from_ns = s.now_ns;
        c->within = within_guarantee(c);
        if (!c->requested && !c->told_open) {
            c->requested = true;
            at(s.now_ns + message_ns(), MESSAGE, (int)(c - s.clients), c->gate_generation, SIM_REQUEST);
        }
        return;
    }
    if (c->host == AT_GATE)
        pass_gate(c);
    if (!has_room(c)) {
        c->host = QUEUE_FULL;
        await_room(c);
        return;
    }
    c->host = LAUNCHING;
    c->submitting = true;
    at(s.now_ns + LAUNCH_NS, SUBMIT, (int)(c - s.clients), 0, 0);
}

static void think(struct client *c) {
    c->host = THINKING;
    c->position = 0;
    c->think_from_ns = s.now_ns;
    int64_t woken_ns = s.now_ns + wake_ns(), until_ns = woken_ns + spread_ns(c->is.think_ns, 0.2);
    if (c->is.period_ns)
        until_ns = (woken_ns / c->is.period_ns + 1) * c->is.period_ns + (c - s.clients) * 1000 * US;
    later(c, until_ns - s.now_ns);
    if (c->owes && c->told_open) {
        int64_t most_ns = s.config.anticipation_ns;
        int64_t waits_ns = c->usual_think_ns > most_ns ? 0 : least(most_ns, 2 * c->usual_think_ns);
        at(s.now_ns + waits_ns, GIVE_BACK, (int)(c - s.clients), c->host_generation, 0);
    }
}

static void answer(struct client *c) {
    struct sim_outcome *outcome = &s.outcomes[c - s.clients];
    if (c->begun_ns >= s.config.settle_ns && outcome->answers < SIM_ANSWERS_MAX)
        outcome->answers_ns[outcome->answers++] = s.now_ns - c->begun_ns;
}

void drained(struct client *c) {
    c->idle_from_ns = s.now_ns;
    c->drained_reported_ns = c->reported_ns;
    if (c->host == SYNCING) {
        answer(c);
        think(c);
    }
    owe_release(c);
}

void submit(struct client *c) {
    int64_t run_ns = spread_ns(c->is.kernel_ns, 0.05);
    c->submitting = false;
    if (!c->queued)
        c->idle_ns += s.now_ns - c->idle_from_ns;
    c->ring[(c->first + c->queued++) % RING_MAX] = run_ns;
    c->backlog_ns += run_ns;
    s.fifo[s.fifo_last++ % FIFO_MAX] = (int)(c - s.clients);
    run_next();
    if (c->is.batch && ++c->position >= c->is.batch) {
        c->host = SYNCING;
    } else {
        proceed(c);
    }
}

void host(struct client *c) {
    if (c->host == THINKING) {
        int64_t think_ns = least(s.now_ns - c->think_from_ns, 2 * s.config.anticipation_ns);
        c->usual_think_ns += (think_ns - c->usual_think_ns) / 8;
        c->begun_ns = s.now_ns;
    }
    proceed(c);
}
