/* What the parts of the virtual machine share: its state, and what they do for each other.
 *
 * All simulated threads run on one kernel thread, which changes stack and thread-local data by itself. So nothing here
 * needs a lock, and a function of this library is only left in the middle where it calls `point` or `block`. */
#ifndef VT_MACHINE_H
#define VT_MACHINE_H

#ifndef __x86_64__
#error "the virtual machine changes stacks by itself, which it can on x86-64 alone"
#endif

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "vt.h"

#define NEVER UINT64_MAX
#define START_NS 1000000000ull /* of the clock: what subtracts a little from "now" stays above 0 */
#define FIRST_PID 1000
#define FIRST_TID 5000
#define HIDDEN __attribute__((visibility("hidden")))

enum { THREADS = 512, PROCESSES = 128, DESCRIPTORS = 16384, NAME = 24 };
enum state { READY = 1, BLOCKED, ENDED };
enum kind {
    P_CLOCK = 1,
    P_FUTEX_WAIT,
    P_FUTEX_WAKE,
    P_SLEEP,
    P_POLL,
    P_IO,
    P_MUTEX,
    P_CREATE,
    P_SPEND,
    P_ATOMIC,
    P_BARRIER,
    P_SWITCH,
    P_NOTE,
    P_KINDS,
};

/* What a blocked thread waits for: an object, by its address or its place in a file, and what kind that is. */
struct key {
    uint64_t object, kind;
};
enum { K_NOTHING, K_FUTEX, K_MUTEX, K_CONDITION, K_SEMAPHORE, K_ONCE, K_THREAD, K_LOCK, K_ROOM, K_FILE = 16 };

struct thread {
    int id, process, result;
    enum state state;
    bool entered; /* by vt_enter: the real process needs it */
    bool ghost;   /* its process is dead, and it goes on: nothing that it does is seen by anybody */
    int closed;   /* while above 0 no other thread runs, unless it blocks */
    uint32_t spins, tid, parked, bits;
    const void *looked_from; /* at the clock, the last time */
    uint64_t t, deadline, sequence;
    uint64_t until; /* it does nothing but look at the clock until then; 0: it does something else */
    struct key key;
    struct pollfd *fds;
    int fd_count;
    enum kind last;
    const void *place; /* where its last point was called from */
    char name[NAME];
    void *(*run)(void *);
    void (*plain)(void *);
    void *argument, *value, *stack;
    pthread_t real;
};

struct variable {
    char *name, *value;
    struct variable *next;
};

struct process {
    char name[NAME];
    char *folder; /* NULL: none */
    struct variable *variables;
    uint32_t scale;
    bool stopped, dead;
    int end_fd; /* readable when it is dead; 0: nobody asked for one */
    uint64_t points, act_at, act_for_ns;
    enum vt_action act;
};

extern struct vt_config config HIDDEN;
extern struct thread threads[THREADS] HIDDEN;
extern struct process processes[PROCESSES] HIDDEN;
extern int thread_count HIDDEN, process_count HIDDEN;
/* The running thread; NULL in what is not simulated. */
extern __thread struct thread *self HIDDEN __attribute__((tls_model("initial-exec")));

enum {
    LOOKS_FREE = 8,  /* looks at the clock from one place with nothing between them, before each costs more */
    LOOKS_MOST = 64, /* and no more than so many times as much */
};

/* Who does nothing but look at the clock waits for a time, and each look takes longer, so that it is soon there. What one more
 * costs, after so many that are counted. */
static inline uint64_t look_cost(uint32_t *spins) {
    *spins += *spins < LOOKS_MOST;
    return (uint64_t)config.costs.clock_ns * (*spins > LOOKS_FREE ? *spins - LOOKS_FREE + 1 : 1);
}

/* In a function that stands in for one of the C library's: is the caller simulated? Remembers where it called from. */
#define SIMULATED() (self != NULL && (self->place = __builtin_return_address(0)) != NULL)

/* The function that this one stands before. */
#define REAL(name)                                               \
    ({                                                           \
        static __typeof__(&name) known_;                         \
        if (!known_)                                             \
            known_ = (__typeof__(&name))dlsym(RTLD_NEXT, #name); \
        known_;                                                  \
    })

/* The kernel itself, round whatever stands before the C library. */
static inline long raw(long number, long a, long b, long c, long d, long e, long f) {
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/* A result of the kernel's as the C library gives it. */
static inline long answer(long result) {
    if (result < 0 && result > -4096) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

static inline int fail(int error) {
    errno = error;
    return -1;
}

static inline uint64_t nanoseconds(const struct timespec *time) {
    return (uint64_t)time->tv_sec * 1000000000ull + (uint64_t)time->tv_nsec;
}

/* After so much from now; never, where that is beyond all time. */
static inline uint64_t after(uint64_t ns) { return ns > NEVER - 1 - self->t ? NEVER : self->t + ns; }

/* What is left to chance has one stream for each use. Forced delays have their own, so that limiting them changes no other
 * cost; programs have theirs, so that what they draw does not depend on the noise. */
enum use { NOISE, DELAYS, PROGRAMS, STREAMS };
struct stream {
    uint64_t a, b;
};
extern struct stream streams[STREAMS] HIDDEN;
extern uint64_t run_hash HIDDEN;
enum { PREEMPTED_ONE_IN = 20000 };

/* Here, and by the stream, since every point draws: xorshift128+ (Vigna, "Further scramblings of Marsaglia's xorshift
 * generators"). */
static inline uint64_t draw(struct stream *stream) {
    uint64_t a = stream->a;
    const uint64_t b = stream->b;

    stream->a = b;
    a ^= a << 23;
    stream->b = a ^ b ^ (a >> 18) ^ (b >> 5);
    return stream->b + b;
}

static inline uint64_t draw_below(struct stream *stream, uint64_t limit) {
    return (uint64_t)(((unsigned __int128)draw(stream) * limit) >> 64);
}

/* As long as the noise says. */
static inline uint64_t draw_cost(struct stream *noise, uint64_t mean) {
    return config.noise == VT_EXACT || mean < 2 ? mean : mean / 2 + draw_below(noise, mean + 1);
}

/* Whether a point is one at which another program has the processor. */
static inline bool draw_preempted(struct stream *delays) {
    return config.noise >= VT_DELAYS && draw_below(delays, PREEMPTED_ONE_IN) == 0;
}

static inline uint64_t mixed(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15ull;
    return hash ^ hash >> 29;
}

/* Into the run's hash. */
static inline void mix(uint64_t value) { run_hash = mixed(run_hash, value); }

/* chance.c */
HIDDEN void chance_begin(uint64_t seed);
HIDDEN uint64_t draw_latency(void);               /* from a wake to running */
HIDDEN uint64_t draw_preemption(void);            /* how long it takes, once there is one */
HIDDEN void draw_bytes(void *bytes, size_t size); /* for programs that ask the kernel for random ones */

/* schedule.c */
HIDDEN void point(enum kind kind, uint64_t cost_ns);                /* others may run; and the caller may be a ghost after it */
HIDDEN int block(struct key key, uint32_t bits, uint64_t deadline); /* 0: woken; ETIMEDOUT; for a ghost ECANCELED */
HIDDEN int wake(struct key key, uint32_t bits, int most);           /* how many were woken */
HIDDEN bool awaited(struct key key, uint32_t bits);
HIDDEN void wake_thread(struct thread *thread, int result, uint64_t at);
HIDDEN void due_changed(struct thread *thread); /* after its state, time, deadline or process changed */
HIDDEN void choose_anew(void);                  /* the running thread need not be the one that is due first any more */
HIDDEN void descriptors_changed(void);          /* who polls may find something, from now on */
HIDDEN void pass(void);                         /* to the thread that is due first */
HIDDEN void before_horizon(uint64_t at);        /* something else happens at this time */
HIDDEN void look_until(uint64_t at);            /* at the clock, again and again */

/* switch.S: keep the stack in *from and go on with another; wait for ever, when *here was set to 1. */
HIDDEN void vt_switch(void **from, void *to, uintptr_t fs, int instruction);
HIDDEN void vt_park(void **from, uint32_t *here);

/* timers.c */
HIDDEN uint64_t timers_first(void);
HIDDEN void timers_expire(uint64_t at); /* one that is due then */
HIDDEN void timers_continue(int process, uint64_t at);
HIDDEN void timer_closed(int fd);

/* threads.c */
HIDDEN struct thread *thread_fresh(int process, const char *name, uint64_t t);
HIDDEN struct thread *thread_by_tid(long tid);

/* processes.c */
HIDDEN int process_by_pid(long pid);   /* -1: none of that pid lives */
HIDDEN void process_acts(int process); /* what vt_at asked for */
HIDDEN void process_continues(int process, uint64_t at);

/* descriptors.c: whose is which */
HIDDEN long own(long fd);      /* the running process's, where there is one; gives it back */
HIDDEN bool owned(int fd);     /* by the running process */
HIDDEN int owner_of(int fd);   /* -1: none */
HIDDEN long close_own(int fd); /* as the kernel's close */
HIDDEN void descriptors_end(int process);

/* memory.c */
HIDDEN struct key key_of(const void *word, bool private, uint64_t kind);
HIDDEN void *map(void *at, size_t size, int protection, int flags, int fd, long offset);
HIDDEN void memory_end(int process);

/* locks.c */
HIDDEN long lock(int fd, int command, void *argument);
HIDDEN bool is_lock(int command);
HIDDEN void locks_closed(int fd);
HIDDEN void locks_end(int process);

/* files.c, futexes.c, sockets.c, waits.c, times.c, pids.c: what the C library's functions and syscall() share */
HIDDEN long file_open(int folder, const char *path, int flags, long mode);
HIDDEN long file_read(int fd, void *bytes, size_t size);
HIDDEN long file_write(int fd, const void *bytes, size_t size);
HIDDEN long control(int fd, int command, void *argument);
HIDDEN long futex(uint32_t *word, int operation, uint32_t value, const struct timespec *timeout, uint32_t bits);
HIDDEN long transfer(long number, int fd, const long arguments[5]);
HIDDEN void listeners_changed(void); /* who waits to be connected may be, or be refused, from now on */
HIDDEN long connect_as(int fd, const void *address, unsigned size);
HIDDEN long wait_ready(struct pollfd *fds, int count, uint64_t deadline);
HIDDEN long poll_until(struct pollfd *fds, int count, uint64_t deadline);
extern bool room_awaited HIDDEN; /* somebody waits, or did, for room to write: what is read gives it */
HIDDEN int tell_time(struct timespec *time, const void *from); /* from where the clock is looked at */
HIDDEN int sleep_until(uint64_t deadline);
HIDDEN long pidfd(long pid);
HIDDEN long proc_file(const char *path); /* -1: no path of a simulated process; else a descriptor, or -errno below -1 */
HIDDEN long send_signal(long pid, int signal);

/* place.c, budget.c */
HIDDEN void trace_switch(const struct thread *next);
HIDDEN _Noreturn void die(int status, const char *why); /* with a dump, but for VT_IMPOSSIBLE */
HIDDEN _Noreturn void die_at(int status, const char *why, const void *place);
HIDDEN void budget_begin(uint32_t seconds);

#endif
