/* A virtual machine: several simulated processes, each with several threads, in one real process and on one simulated
 * clock. Exactly one simulated thread runs at a time, and which one follows from the seed alone.
 *
 * The library is preloaded: it stands between what runs in the simulated processes and the C library, and answers what
 * touches the world there (the clock, futexes, sleeping, sockets, record locks, threads, pids). Each such contact is a
 * *point*: it costs simulated time, and another thread may run after it. Threads that were not made by vt_enter,
 * vt_spawn or a simulated thread's pthread_create are left alone. */
#ifndef VT_H
#define VT_H

#include <stdint.h>

enum vt_noise {
    VT_EXACT = 0,  /* each cost and latency is its mean */
    VT_SPREAD = 1, /* half to one and a half times its mean */
    VT_DELAYS = 2, /* spread, and forced delays: preemptions at any point, late wakes */
};

/* What contacts with the world cost, in ns of simulated time. */
struct vt_costs {
    uint32_t clock_ns;
    uint32_t futex_ns;
    uint32_t io_ns; /* a system call on a descriptor */
    uint32_t mutex_ns;
    uint32_t barrier_ns;     /* membarrier */
    uint32_t create_ns;      /* pthread_create; its thread runs up to twice as long later */
    uint32_t step_ns;        /* what epoll_wait adds for each time that it returns something */
    uint32_t wake_ns;        /* from a wake, or a deadline, to running */
    uint32_t wake_spread_ns; /* up to so much more or less than wake_ns, whatever the noise */
};

struct vt_config {
    uint64_t seed;
    uint32_t noise;       /* enum vt_noise */
    uint32_t atomics;     /* 1: atomic operations of code compiled with -fsanitize=thread are points, too */
    uint32_t trace;       /* 1: every switch and note is printed on stderr */
    uint32_t budget_s;    /* real seconds after which the run is ended with every thread's place; 0: none */
    uint64_t delays_most; /* forced delays after so many are not made: where VT_DELAYS is shrunk */
    struct vt_costs costs;
};

/* What happens to a process at one of its points. */
enum vt_action { VT_KILL = 1, VT_STOP = 2 };

#define VT_ENDED_BY_BUDGET 70 /* exit status of a run that did not end within its budget */
#define VT_DEADLOCK 71        /* of one in which no thread could ever run again */
#define VT_IMPOSSIBLE 72      /* of one that asked for more than there is: threads, processes, descriptors */

/* Once in a real process, before anything else. */
void vt_init(const struct vt_config *config);

/* A process. Libraries under `folder` are its own: no other process sees them (NULL: it has none). Its points cost
 * `scale` times what they cost others. Returns its number, from 0. */
int vt_process(const char *name, const char *folder, uint32_t scale);
int vt_pid(int process);                                       /* as getpid says in it */
void vt_env(int process, const char *name, const char *value); /* getenv in it */

/* The calling thread becomes a thread of that process; it is running. */
void vt_enter(int process, const char *name);
/* Another thread of a process; it runs when its turn comes. Returns its number. */
int vt_spawn(int process, const char *name, void (*run)(void *), void *argument);

void vt_sleep(uint64_t ns); /* others run meanwhile */
/* What a loop is that looks at the clock from one place until a time: as many points, without the way there and back. A
 * program that finds it need not have that loop itself. */
void clock_pass_until(uint64_t time_ns);
void vt_spend(uint64_t ns); /* processor time of the program itself: one point */

void vt_kill(int process); /* its threads never run again; its descriptors are closed, its record locks gone, its shared
                              memory no longer shared */
void vt_stop(int process); /* as SIGSTOP does */
void vt_continue(int process);
/* At the process's point `number` (from 1), from whichever thread; a stop lasts `for_ns`. One for each process. */
void vt_at(int process, uint64_t number, enum vt_action action, uint64_t for_ns);
/* The wake number `number` (from 1) of all futex wakes is lost. */
void vt_lose_wake(uint64_t number);

uint64_t vt_now(void);
uint64_t vt_real_ns(void);
uint64_t vt_points(void);
uint64_t vt_points_of(int process);
uint64_t vt_switches(void);
uint64_t vt_wakes(void);
uint64_t vt_barriers(void);
uint64_t vt_delays(void);                       /* forced so far */
uint64_t vt_hash(void);                         /* of every point: thread, kind and time */
uint64_t vt_random(uint64_t below);             /* 0 for 0 */
void vt_note(const char *what, uint64_t value); /* into the hash and the trace */
void vt_dump(void); /* on stderr: each thread's process, state, time, what it waits for, and where its last point was
                       called from (library and offset) */

/* Counting semaphores for programs of the test's own. */
struct vt_sem {
    uint32_t count;
};
void vt_sem_post(struct vt_sem *sem);
void vt_sem_wait(struct vt_sem *sem);

#endif
