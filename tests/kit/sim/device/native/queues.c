#include "state.h"

#define TURN_NS (2000 * US)       /* of a context, where others have work: the driver's time slice */
#define GUARANTEE_NS (20000 * US) /* over how long a wait is judged: whether the program was within its request */

struct sim s;

void at(int64_t at_ns, int what, int program, unsigned generation, int kind) {
    events_put(&s.events, (struct event){at_ns, s.order++, what, program, kind, generation});
}

void later(struct client *c, int64_t in_ns) { at(s.now_ns + in_ns, HOST, (int)(c - s.clients), ++c->host_generation, 0); }

/* GPU time that the program may still use within its request is a bucket that runs over at GUARANTEE_NS of it. */
static void earn(struct client *c) {
    c->bucket_ns += (s.now_ns - c->bucket_at_ns) * c->request_percent / 100;
    c->bucket_ns = least(c->bucket_ns, GUARANTEE_NS * c->request_percent / 100);
    c->bucket_at_ns = s.now_ns;
}

void account(void) {
    if (s.running < 0 || s.now_ns <= s.accounted_ns)
        return;
    struct client *c = &s.clients[s.running];
    int64_t ran_ns = s.now_ns - s.accounted_ns;
    earn(c);
    c->bucket_ns = most(c->bucket_ns - ran_ns, -GUARANTEE_NS);
    double learned_ns = (double)ran_ns * (double)c->is.kernel_ns / (double)s.run_ns;
    c->reported_ns += (int64_t)(learned_ns * (double)c->is.reported_permille / 1000);
    s.busy_ns += ran_ns;
    c->ran_ns += ran_ns;
    c->counted_ns += most(0, s.now_ns - most(s.accounted_ns, s.config.settle_ns));
    s.accounted_ns = s.now_ns;
}

bool within_guarantee(struct client *c) {
    account();
    earn(c);
    return c->bucket_ns >= GUARANTEE_NS * c->request_percent / 1000;
}

static int64_t left_ns(struct client *c) {
    bool runs = s.running == c - s.clients;
    return c->backlog_ns - (runs ? s.run_ns - (s.run_ends_ns - s.now_ns) : 0);
}

bool has_room(struct client *c) {
    if (!s.config.gated)
        return c->queued < SIM_BACKLOG_MAX;
    return c->queued == 0 || (c->queued < SIM_BACKLOG_MAX && left_ns(c) <= c->cap_ns);
}

void await_room(struct client *c) {
    if (c->host != QUEUE_FULL)
        return;
    int64_t in_ns = 0;
    if (!has_room(c)) {
        if (!s.config.gated || s.running != c - s.clients)
            return;
        in_ns = left_ns(c) - c->cap_ns;
        if (s.now_ns + in_ns >= s.run_ends_ns)
            return;
    }
    later(c, in_ns + between(4 * US, 8 * US));
}

static void start(int program, int64_t run_ns) {
    s.running = program;
    s.run_ns = run_ns;
    s.accounted_ns = s.now_ns;
    s.run_ends_ns = s.now_ns + run_ns;
    at(s.run_ends_ns, KERNEL_END, program, ++s.run_generation, 0);
    await_room(&s.clients[program]);
}

void start_first_of(int program) { start(program, s.clients[program].ring[s.clients[program].first]); }

static int next_context(void) {
    int waiting = -1;
    for (int step = 1; step < s.count && waiting < 0; step++) {
        int program = (most(s.context, 0) + step) % s.count;
        if (s.clients[program].queued)
            waiting = program;
    }
    bool stays = s.context >= 0 && s.clients[s.context].queued;
    if (s.context < 0 && s.clients[0].queued)
        return 0;
    return stays && (waiting < 0 || s.now_ns - s.context_from_ns < TURN_NS) ? s.context : waiting;
}

void run_next(void) {
    if (s.running >= 0 || s.switching)
        return;
    if (!s.config.timeslice) {
        if (s.fifo_first != s.fifo_last)
            start_first_of(s.fifo[s.fifo_first++ % FIFO_MAX]);
        return;
    }
    int program = next_context();
    if (program < 0)
        return;
    if (program == s.context) {
        start_first_of(program);
        return;
    }
    s.context = program;
    s.context_from_ns = s.now_ns + s.config.switch_ns;
    s.switching = true;
    at(s.context_from_ns, SWITCHED, program, 0, 0);
}
