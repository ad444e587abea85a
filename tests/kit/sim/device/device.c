/* The discrete events behind device.h. A program is a host thread that launches kernels, waits for results and thinks;
 * the device runs one kernel at a time. What follows from one event stands in the function named for it. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "events.h"

#define US 1000LL
#define LAUNCH_NS (9 * US / 2)    /* one launch on the host */
#define OPENING_NS (17 * US)      /* from the manager's writing the gate to the waiting launch's passing it */
#define TURN_NS (2000 * US)       /* of a context, where others have work: the driver's time slice */
#define GUARANTEE_NS (20000 * US) /* over how long a wait is judged: whether the program was within its request */
#define RING_MAX (SIM_BACKLOG_MAX + 1)
#define FIFO_MAX (2U * SIM_PROGRAMS_MAX * SIM_BACKLOG_MAX)

enum what { HOST, SUBMIT, KERNEL_END, SWITCHED, OPENED, MESSAGE, GIVE_BACK, LOOK };
enum host { LAUNCHING, AT_GATE, QUEUE_FULL, SYNCING, THINKING };

struct client {
    struct sim_program is;
    int64_t request_percent;
    enum host host;
    int64_t position; /* within the batch */
    unsigned host_generation, gate_generation;
    bool submitting, open, told_open, requested, owes;
    int64_t cap_ns;
    /* Its queue: durations in a ring, the running one included. */
    int64_t ring[RING_MAX];
    int first, queued;
    int64_t backlog_ns;
    int64_t counted_ns, reported_ns, drained_reported_ns;
    int64_t idle_ns, idle_from_ns;
    int64_t wait_from_ns, think_from_ns, usual_think_ns, begun_ns;
    int64_t bucket_ns, bucket_at_ns, longest_wait_ns;
    bool within;
};

static struct sim {
    struct sim_config config;
    struct client clients[SIM_PROGRAMS_MAX];
    int count;
    int64_t now_ns, busy_ns;
    uint64_t random, order;
    struct events events;
    int running, context;
    bool switching;
    int64_t run_ends_ns, run_ns, accounted_ns, context_from_ns;
    int fifo[FIFO_MAX]; /* a power of two, as the counters run over */
    unsigned fifo_first, fifo_last, run_generation, look_generation;
    int64_t calls;
    int64_t (*decide)(int, int, int64_t);
    struct sim_page *pages;
    struct sim_gate *gates;
    struct sim_outcome *outcomes;
    int64_t *told_busy_ns;
} s;

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static void at(int64_t at_ns, int what, int program, unsigned generation, int kind) {
    events_put(&s.events, (struct event){at_ns, s.order++, what, program, kind, generation});
}

/* xorshift64, in [0, 1). */
static double chance(void) {
    s.random ^= s.random << 13;
    s.random ^= s.random >> 7;
    s.random ^= s.random << 17;
    return (double)(s.random >> 11) / 9007199254740992.0;
}

static int64_t between(int64_t least_ns, int64_t most_ns) {
    return least_ns + (int64_t)(chance() * (double)(most_ns - least_ns));
}

static int64_t message_ns(void) { return between(5 * US, 10 * US); }

/* A sleeping thread runs again: now and then something else has its processor. */
static int64_t wake_ns(void) { return between(9 * US, 12 * US) + (chance() < 0.005 ? between(0, 200 * US) : 0); }

static int64_t spread_ns(int64_t ns, double part) { return (int64_t)((double)ns * (1 + part * (2 * chance() - 1))); }

static void later(struct client *c, int64_t in_ns) { at(s.now_ns + in_ns, HOST, (int)(c - s.clients), ++c->host_generation, 0); }

/* GPU time that the program may still use within its request is a bucket that runs over at GUARANTEE_NS of it. */
static void earn(struct client *c) {
    c->bucket_ns += (s.now_ns - c->bucket_at_ns) * c->request_percent / 100;
    c->bucket_ns = least(c->bucket_ns, GUARANTEE_NS * c->request_percent / 100);
    c->bucket_at_ns = s.now_ns;
}

/* Counts what the running kernel has done since this was last called. */
static void account(void) {
    if (s.running < 0 || s.now_ns <= s.accounted_ns)
        return;
    struct client *c = &s.clients[s.running];
    int64_t ran_ns = s.now_ns - s.accounted_ns;
    earn(c);
    c->bucket_ns = most(c->bucket_ns - ran_ns, -GUARANTEE_NS);
    double learned_ns = (double)ran_ns * (double)c->is.kernel_ns / (double)s.run_ns;
    c->reported_ns += (int64_t)(learned_ns * (double)c->is.reported_permille / 1000);
    s.busy_ns += ran_ns;
    c->counted_ns += most(0, s.now_ns - most(s.accounted_ns, s.config.settle_ns));
    s.accounted_ns = s.now_ns;
}

static int64_t left_ns(struct client *c) {
    bool runs = s.running == c - s.clients;
    return c->backlog_ns - (runs ? s.run_ns - (s.run_ends_ns - s.now_ns) : 0);
}

static bool has_room(struct client *c) {
    if (!s.config.gated)
        return c->queued < SIM_BACKLOG_MAX;
    return c->queued == 0 || (c->queued < SIM_BACKLOG_MAX && left_ns(c) <= c->cap_ns);
}

/* A launch waits for its own queue: lets it look again when that may have become short enough. */
static void await_room(struct client *c) {
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

static void start_first_of(int program) { start(program, s.clients[program].ring[s.clients[program].first]); }

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

static void run_next(void) {
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

static void fill_pages(void) {
    account();
    *s.told_busy_ns = s.busy_ns;
    for (int i = 0; i < s.count; i++) {
        struct client *c = &s.clients[i];
        bool idle = !c->queued && c->host != AT_GATE;
        int64_t idle_ns = c->idle_ns + (idle ? s.now_ns - c->idle_from_ns : 0);
        s.pages[i] =
            (struct sim_page){c->reported_ns, c->reported_ns - c->drained_reported_ns, idle_ns, c->host == AT_GATE, c->queued};
        if (c->is.feigns) {
            s.pages[i].idle_ns = s.now_ns - c->reported_ns;
            s.pages[i].undrained_ns = 0;
        }
    }
}

static void owe_release(struct client *c) {
    if (c->owes && !c->told_open && !c->queued && !c->submitting) {
        c->owes = false;
        at(s.now_ns + message_ns(), MESSAGE, (int)(c - s.clients), 0, SIM_RELEASE);
    }
}

/* Does with the gates what was decided. Closing is seen by the next launch, opening once the waiting one has woken. */
static void apply(void) {
    for (int i = 0; i < s.count; i++) {
        struct client *c = &s.clients[i];
        struct sim_gate *gate = &s.gates[i];
        if (gate->open && c->cap_ns != gate->cap_ns) {
            c->cap_ns = gate->cap_ns;
            await_room(c);
        }
        if (gate->open && !c->told_open) {
            c->told_open = true;
            c->owes = false;
            at(s.now_ns + (c->host == AT_GATE ? OPENING_NS : US), OPENED, i, ++c->gate_generation, 0);
        } else if (!gate->open && c->told_open) {
            c->told_open = c->open = c->requested = false;
            c->gate_generation++;
            c->owes = gate->tells || c->queued || c->submitting;
            owe_release(c);
            if (c->host == AT_GATE) {
                c->requested = true;
                at(s.now_ns + message_ns(), MESSAGE, i, c->gate_generation, SIM_REQUEST);
            }
        }
        c->owes = c->owes || (c->told_open && gate->tells);
    }
}

static void tell(int kind, int program) {
    s.calls++;
    fill_pages();
    int64_t look_ns = s.decide(kind, program, s.now_ns);
    apply();
    at(most(look_ns, s.now_ns + US), LOOK, 0, ++s.look_generation, 0);
}

/* Whether what it executed is within its request, by a margin: the costs that a rule knows are learned ones. */
static bool within_guarantee(struct client *c) {
    account();
    earn(c);
    return c->bucket_ns >= GUARANTEE_NS * c->request_percent / 1000;
}

static void pass_gate(struct client *c) {
    if (!c->queued)
        c->idle_from_ns = s.now_ns;
    if (c->within && s.now_ns > s.config.settle_ns)
        c->longest_wait_ns = most(c->longest_wait_ns, s.now_ns - c->wait_from_ns);
}

/* The host is about to launch. */
static void proceed(struct client *c) {
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

static void drained(struct client *c) {
    c->idle_from_ns = s.now_ns;
    c->drained_reported_ns = c->reported_ns;
    if (c->host == SYNCING) {
        answer(c);
        think(c);
    }
    owe_release(c);
}

static void submit(struct client *c) {
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

static void host(struct client *c) {
    if (c->host == THINKING) {
        int64_t think_ns = least(s.now_ns - c->think_from_ns, 2 * s.config.anticipation_ns);
        c->usual_think_ns += (think_ns - c->usual_think_ns) / 8;
        c->begun_ns = s.now_ns;
    }
    proceed(c);
}

static void give_back(struct client *c) {
    if (!c->told_open || c->queued || c->submitting || !c->owes)
        return;
    c->told_open = c->open = c->owes = false;
    c->gate_generation++;
    s.gates[c - s.clients].open = 0;
    at(s.now_ns + message_ns(), MESSAGE, (int)(c - s.clients), 0, SIM_RELEASE);
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
