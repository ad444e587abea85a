#ifndef SIM_STATE_H
#define SIM_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "device.h"
#include "events.h"

/* The discrete events behind device.h. A program is a host thread that launches kernels, waits for results and thinks;
 * the device runs one kernel at a time. What follows from one event stands in the function named for it. */

/* Of this library alone. */
#pragma GCC visibility push(hidden)

#define US 1000LL
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
    int64_t ran_ns, counted_ns, reported_ns, drained_reported_ns;
    int64_t idle_ns, idle_from_ns;
    int64_t wait_from_ns, think_from_ns, usual_think_ns, begun_ns;
    int64_t bucket_ns, bucket_at_ns, longest_wait_ns;
    bool within;
};

extern struct sim {
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

/* ---- chance.c: how long things take ---- */

int64_t between(int64_t least_ns, int64_t most_ns);
int64_t message_ns(void);

/* A sleeping thread runs again: now and then something else has its processor. */
int64_t wake_ns(void);

/* That time, by so small a part of it more or less. */
int64_t spread_ns(int64_t ns, double part);

/* ---- queues.c: what is queued, and what of it runs ---- */

/* Has something (enum what) happen then. What is of an older generation by then is nothing any more. */
void at(int64_t at_ns, int what, int program, unsigned generation, int kind);

/* Has the host go on in so long. */
void later(struct client *c, int64_t in_ns);

/* Counts what the running kernel has done since this was last called. */
void account(void);

/* Whether what it executed is within its request, by a margin: the costs that a rule knows are learned ones. */
bool within_guarantee(struct client *c);

bool has_room(struct client *c);

/* A launch waits for its own queue: lets it look again when that may have become short enough. */
void await_room(struct client *c);

void start_first_of(int program);
void run_next(void);

/* ---- gates.c: what the manager is told, and what it does ---- */

void owe_release(struct client *c);
void tell(int kind, int program);
void give_back(struct client *c);

/* ---- hosts.c: the programs ---- */

void pass_gate(struct client *c);

/* The host is about to launch. */
void proceed(struct client *c);

void host(struct client *c);
void submit(struct client *c);

/* Nothing is queued any more. */
void drained(struct client *c);

static inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

#pragma GCC visibility pop

#endif
