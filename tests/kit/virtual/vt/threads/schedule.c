/* Who runs: the thread that is due first. While the running thread's clock is the least of all it goes on; so no effect
 * is ever seen before its cause. */
#include <sys/auxv.h>
#include <sys/syscall.h>

#include "machine.h"

__thread struct thread *self;

/* When each thread is due: its clock, or the deadline of what it waits for. Beside the threads themselves, since every
 * choice reads all of them. */
static uint64_t due[THREADS];
static uint64_t waits[THREADS]; /* its key, hashed; 0: for none */
static uint64_t horizon;        /* when the first of the others is due; before that the running thread goes on */
static uint64_t points, switches, sequence;
static bool changed; /* descriptors, at changed_at */
static uint64_t changed_at;

static uint64_t hashed(struct key key) { return (key.object * 0x9E3779B97F4A7C15ull ^ key.kind) | 1; }

static bool runs(const struct thread *thread) {
    const struct process *process = &processes[thread->process];

    return thread->state != ENDED && (thread->ghost || (!process->stopped && !process->dead));
}

void due_changed(struct thread *thread) {
    due[thread->id] = !runs(thread) ? NEVER : thread->state == READY ? thread->t : thread->deadline;
    before_horizon(due[thread->id]);
}

void before_horizon(uint64_t at) {
    if (at < horizon)
        horizon = at;
}

void choose_anew(void) { horizon = 0; }

void descriptors_changed(void) {
    changed = true;
    changed_at = self->t;
}

void wake_thread(struct thread *thread, int result, uint64_t at) {
    thread->state = READY;
    thread->result = result;
    if (at > thread->t)
        thread->t = at;
    waits[thread->id] = 0;
    due_changed(thread);
}

/* Wakes those whose descriptors became ready. Sockets are real, and between simulated processes they change only by
 * what simulated threads do. */
static void check_polls(void) {
    changed = false;
    for (int i = 0; i < thread_count; i++) {
        struct thread *thread = &threads[i];

        if (thread->fds != NULL && thread->state == BLOCKED && !processes[thread->process].dead &&
            raw(SYS_poll, (long)thread->fds, thread->fd_count, 0, 0, 0, 0) > 0)
            wake_thread(thread, 0, changed_at + draw_latency());
    }
}

/* The thread that is due first, ties by the seed; NULL where none ever is. */
static struct thread *due_first(uint64_t *least, uint64_t *second) {
    int best = -1;
    uint32_t equals = 1;

    *least = *second = NEVER;
    for (int i = 0; i < thread_count; i++) {
        const uint64_t at = due[i];

        if (at > *least || at == NEVER) {
            if (at < *second)
                *second = at;
        } else if (at < *least) {
            *second = *least;
            *least = at;
            best = i;
            equals = 1;
        } else {
            *second = at;
            if (draw_below(&streams[NOISE], ++equals) == 0)
                best = i;
        }
    }
    return best < 0 ? NULL : &threads[best];
}

static struct thread *choose(void) {
    for (;;) {
        uint64_t least, second, timer;
        struct thread *best;

        if (changed)
            check_polls();
        best = due_first(&least, &second);
        timer = timers_first();
        if (timer < least) {
            timers_expire(timer);
            changed = true;
            changed_at = timer;
            continue;
        }
        if (best == NULL)
            return NULL;
        if (best->state == BLOCKED) {
            wake_thread(best, ETIMEDOUT, best->deadline + draw_latency());
            continue;
        }
        horizon = timer < second ? timer : second;
        return best;
    }
}

/* Counts one point of a thread; whether another may be due after it. */
static inline bool pass_after(struct thread *thread, enum kind kind, uint64_t cost_ns) {
    struct process *process = &processes[thread->process];

    thread->t += draw_cost(&streams[NOISE], cost_ns) * process->scale;
    if (draw_preempted(&streams[DELAYS]))
        thread->t += draw_preemption();
    thread->last = kind;
    points++;
    mix((uint64_t)thread->id << 8 | kind);
    mix(thread->t);
    if (__builtin_expect(++process->points == process->act_at, 0))
        process_acts(thread->process);
    return (thread->t > horizon || changed) && !thread->ghost && thread->closed == 0;
}

/* The looks of one that looks at the clock until a time, up to the first after which another may be due, or that is
 * preempted, or at which something is to happen. What changes with each look stays in registers. */
static void look_alone(struct thread *thread) {
    struct process *process = &processes[thread->process];
    const uint64_t end = changed ? 0 : horizon, most = process->act_at - process->points - 1;
    struct stream noise = streams[NOISE], delays = streams[DELAYS];
    uint64_t hash = run_hash, t = thread->t, done = 0;
    uint32_t spins = thread->spins;

    while (t < thread->until && done < most) {
        struct stream drawn = noise, dice = delays;
        uint32_t more = spins;
        const uint64_t next = t + draw_cost(&drawn, look_cost(&more)) * process->scale;

        if (next > end || draw_preempted(&dice))
            break;
        noise = drawn;
        delays = dice;
        spins = more;
        t = next;
        hash = mixed(mixed(hash, (uint64_t)thread->id << 8 | P_CLOCK), t);
        done++;
    }
    streams[NOISE] = noise;
    streams[DELAYS] = delays;
    run_hash = hash;
    thread->t = t;
    thread->spins = spins;
    points += done;
    process->points += done;
}

/* All the looks that need not be the thread's own, whose stack is not looked at. Whether another may be due then; if not,
 * the thread itself goes on. */
static bool looks_on(struct thread *thread) {
    const struct process *process = &processes[thread->process];

    while (thread->t < thread->until && !thread->ghost) {
        look_alone(thread);
        if (thread->t >= thread->until || process->points + 1 == process->act_at)
            return false;
        if (pass_after(thread, P_CLOCK, look_cost(&thread->spins)))
            return true;
    }
    return false;
}

/* Who looks at the clock until a time does so on whichever stack this is. */
void pass(void) {
    static int instruction = -1;
    struct thread *own = self;
    struct thread *next = own;

    if (instruction < 0) /* whether programs may set the FS base: HWCAP2_FSGSBASE */
        instruction = (getauxval(AT_HWCAP2) & 2) != 0;
    do {
        struct thread *before = next;

        due_changed(before);
        next = choose();
        if (next == NULL)
            die(VT_DEADLOCK, "deadlock: no thread can ever run again");
        if (next != before) {
            switches++;
            mix((uint64_t)next->id << 8 | P_SWITCH);
            mix(next->t);
            if (config.trace)
                trace_switch(next);
        }
    } while (next != own && looks_on(next));
    if (next != own)
        vt_switch(&own->stack, next->stack, (uintptr_t)next->real, instruction);
}

void point(enum kind kind, uint64_t cost_ns) {
    struct thread *thread = self;

    if (thread->ghost)
        return;
    if (kind != P_CLOCK)
        thread->spins = 0;
    if (pass_after(thread, kind, cost_ns))
        pass();
}

void look_until(uint64_t at) {
    struct thread *thread = self;

    thread->until = at;
    do {
        point(P_CLOCK, look_cost(&thread->spins));
        while (looks_on(thread))
            pass();
    } while (thread->t < at);
    thread->until = 0;
}

int block(struct key key, uint32_t bits, uint64_t deadline) {
    struct thread *thread = self;

    if (thread->ghost)
        return ECANCELED;
    thread->state = BLOCKED;
    thread->key = key;
    thread->bits = bits;
    thread->deadline = deadline;
    thread->sequence = ++sequence;
    waits[thread->id] = key.kind == K_NOTHING ? 0 : hashed(key);
    pass();
    thread->key = (struct key){0, K_NOTHING};
    thread->deadline = NEVER;
    return thread->result;
}

/* Who has waited longest; NULL: nobody waits. */
static struct thread *first_waiting(struct key key, uint32_t bits) {
    const uint64_t wanted = hashed(key);
    struct thread *first = NULL;

    for (int i = 0; i < thread_count; i++) {
        struct thread *thread = &threads[i];

        if (waits[i] == wanted && thread->key.object == key.object && thread->key.kind == key.kind &&
            (thread->bits & bits) != 0 && !processes[thread->process].dead &&
            (first == NULL || thread->sequence < first->sequence))
            first = thread;
    }
    return first;
}

bool awaited(struct key key, uint32_t bits) { return first_waiting(key, bits) != NULL; }

int wake(struct key key, uint32_t bits, int most) {
    int woken = 0;

    while (woken < most && !self->ghost) {
        struct thread *first = first_waiting(key, bits);

        if (first == NULL)
            break;
        wake_thread(first, 0, self->t + draw_latency());
        woken++;
    }
    return woken;
}

uint64_t vt_points(void) { return points; }

uint64_t vt_switches(void) { return switches; }
