#ifndef EDGESHARE_GATE_H
#define EDGESHARE_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/bursts.h"
#include "core/clock.h"
#include "core/config.h"
#include "core/costs.h"
#include "core/gaps.h"
#include "core/gate_page.h"
#include "core/lock.h"
#include "core/overlap.h"
#include "core/siblings.h"
#include "core/spent.h"
#include "core/timeline.h"
#include "core/used.h"
#include "threads/slots.h"

#define ES_US UINT64_C(1000)
#define ES_MS UINT64_C(1000000)

enum es_mode {
    ES_NEW,      /* nobody has submitted or made a context yet */
    ES_OUT,      /* no allocation: the hook stays out of the way for ever */
    ES_JOINED,   /* connected; the manager's word holds */
    ES_AWAY,     /* no manager, or it went away: launches wait for it */
    ES_UNSHARED, /* it stayed away longer than the grace time, and the policy is open: launches pass */
};

enum {
    ES_LOOK_NS = 100 * 1000 * 1000,       /* how often a waiter looks whether the manager still lives */
    ES_IDLE_NS = 100 * 1000 * 1000,       /* with no rival: idle that long gives the grant back */
    /* With no rival: what may be queued. A rival that comes waits that long once. It is as much as a driver takes of
     * short kernels (1,024 launches of 50 us), so that programs that run ahead of the device still can. */
    ES_ALONE_CAP_NS = 50 * 1000 * 1000,
    ES_LONGEST_SLICE_NS = 100 * 1000 * 1000, /* the manager's configuration allows no more (slice_ms) */
    ES_OVERDUE_NS = 10 * 1000 * 1000,     /* a head marker so late: its estimate is worth nothing, launches pass singly, … */
    /* … at this distance, and so many times their own length: where others have queued much, what passes must not keep
     * the queue from ever draining. */
    ES_OVERDUE_STEP_NS = 10 * 1000 * 1000,
    ES_OVERDUE_STEP_COSTS = 3,
    ES_SETTLED_NS = 100 * 1000,           /* after that, in place of a barrier, what a thread wrote is taken to be seen */
    ES_UNKNOWN_NS = 100 * 1000 * 1000,    /* how long a function's second launch waits for the time of the first */
    ES_GUESS_NS = 100 * 1000,             /* what a function counts for until its first time is known */
    ES_BRIEF_NS = 2 * 1000,               /* … and a copy of less than two pages for good, unless it is found to be wrong */
    ES_LONG_BURST_NS = 200 * 1000,        /* bursts of this length are timed each, of shorter ones some (es_bursts) */
};

/* The process's gate, and what it knows about the work that it has queued. Everything but the atomics is under `lock`,
 * which is held for a few dozen instructions or one non-blocking send, never across a call of the driver. */
struct es_gate {
    struct es_lock lock;
    uint32_t mode; /* es_mode; atomic */

    /* the manager's */
    struct es_gate_page *page; /* mapped once and replaced in place, so it can always be read once it is not NULL */
    struct es_hint_page *hint;
    struct es_siblings_page *siblings; /* NULL: there is none */
    struct es_config config;
    uint32_t epoch;
    uint32_t session; /* counts the managers that were joined; atomic */
    uint64_t queue_cap_ns;
    uint64_t anticipation_ns;
    bool ignore_managed;  /* managed memory is not counted */
    uint32_t released;    /* the number of the grant that was given back last */
    bool introduced;      /* a REQUEST was sent in this session: the manager waits for the drains of such clients alone */
    bool requested;       /* REQUEST or FOLLOWS was sent for the next grant */
    uint64_t requested_ns;
    int64_t end_error_ns; /* how much later than estimated a drain usually ends: 0 or less */
    uint64_t lead_ns;     /* how much earlier a thread has to wake to launch at a point in time */
    uint32_t waiting;     /* threads at the closed gate */
    uint32_t arriving;    /* threads on the slow path, those at the gate among them: they submit as soon as they may; atomic */

    /* pauses of the hook's own: the gate is shut for some microseconds while the helper looks */
    uint32_t paused; /* futex, private */

    /* queued work */
    uint32_t progress;        /* futex, private: counts batches that ended */
    uint32_t backlog_waiters; /* threads that wait for that */
    uint64_t overdue_pass_ns; /* when a launch last passed because the head was overdue */
    struct es_timeline timeline;
    struct es_overlap overlap;
    struct es_gaps gaps;
    struct es_costs costs;
    uint64_t over_ns; /* of all that had been submitted, what is counted, by its estimates */
    struct es_beside beside; /* … and what is yet to be counted of that */
    uint64_t run_from_ns; /* what had been submitted when last nothing was queued */
    uint64_t guessed_ns; /* what had been submitted by the latest launch of which no exact time is known, */
    uint64_t unseen_ns; /* … and by the latest of which none at all is */
    uint64_t held_streams; /* set of those in which a function of the host was queued behind all that was marked */
    uint64_t gpu_ns;   /* not yet told to the manager */
    uint64_t idle_since_ns; /* when the device was last seen drained; 0: it is not, or nobody knows */
    uint64_t think_ns; /* usual time from there to the next launch */
    uint32_t thoughts; /* how many such times were seen */
    uint32_t begun;    /* the grant under which a batch was opened last */
    uint64_t burst_ns; /* usual time from an idle device to a wait */
    struct es_bursts bursts; /* that were not the first of a grant, */
    struct es_bursts begins; /* and that were */
    uint64_t hand_over_ns; /* usually from when the device falls free to the begin of this client's work; 0: unknown */
};

extern struct es_gate es_gate __attribute__((visibility("hidden")));

/* What the launch path reads: the manager's word, or one of the two below. */
extern const uint32_t *es_gate_word __attribute__((visibility("hidden")));
extern const uint32_t es_word_shut __attribute__((visibility("hidden")));
extern const uint32_t es_word_open __attribute__((visibility("hidden")));

static inline uint32_t es_mode_now(void)
{
    return __atomic_load_n(&es_gate.mode, __ATOMIC_ACQUIRE);
}

/* How a submission was let go: its slot's address, with ES_ASKED added where the gate was asked; ES_ASK when it must be. */
enum { ES_ASK = 0, ES_ASKED = 1 };

/* The launch path: when the submission may go at once, its slot; else ES_ASK. One word is read; nothing shared is
 * written; no fence, no clock. `busy` tells the helper, after it has shut the gate and made every core pass a barrier
 * (membarrier), which threads may still be about to submit under the old word. */
static inline __attribute__((always_inline)) uintptr_t es_gate_pass(uint64_t key, CUstream stream)
{
    struct es_slot *slot = es_slot_self;
    struct es_pass *pass;
    int64_t left_ns;

    if (__builtin_expect(slot == NULL, 0)) {
        es_asked = (struct es_asked){key, stream};
        return ES_ASK;
    }
    __atomic_store_n(&slot->busy, slot->busy + 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    pass = es_passes_place(slot->passes, key);
    left_ns = __atomic_load_n(&slot->left_ns, __ATOMIC_RELAXED) - pass->cost_ns;
    if (__builtin_expect(__atomic_load_n(__atomic_load_n(&es_gate_word, __ATOMIC_RELAXED), __ATOMIC_RELAXED) ==
                                 __atomic_load_n(&slot->word, __ATOMIC_RELAXED) &&
                             es_passes_holds(slot->passes, pass, key, stream) && left_ns >= 0,
                         1)) {
        __atomic_store_n(&slot->left_ns, left_ns, __ATOMIC_RELAXED);
        __atomic_store_n(&slot->launches, slot->launches + 1, __ATOMIC_RELAXED);
        return (uintptr_t)slot;
    }
    __atomic_store_n(&slot->busy, slot->busy - 1, __ATOMIC_RELAXED);
    es_asked = (struct es_asked){key, stream};
    return ES_ASK;
}

/* The slow path: returns when the submission in es_asked may go. ES_ASKED alone: it is none of the hook's business (no allocation, a
 * capture, a call from within the driver). Keeps errno. */
uintptr_t es_gate_ask(void) __attribute__((cold));

/* What follows a submission that was asked for. Keeps errno. */
void es_gate_answered(uintptr_t passed) __attribute__((cold));

/* The submission has returned from the driver. */
static inline __attribute__((always_inline)) void es_gate_passed(uintptr_t passed)
{
    struct es_slot *slot = (struct es_slot *)passed;

    if (__builtin_expect((passed & ES_ASKED) != 0, 0))
        es_gate_answered(passed);
    else
        __atomic_store_n(&slot->busy, slot->busy - 1, __ATOMIC_RELEASE);
}

/* For how long the device still runs what others queued before this grant, as far as is known. */
uint64_t es_gate_before_ns(uint64_t now_ns);

/* How long a drained client may keep its turn while it thinks: for as long as it takes the device to go to another and
 * back, if that is more than the manager said. Callable without the lock. */
uint64_t es_gate_anticipation_ns(void);

/* What the manager should know of this client, into the hint page. With the lock held. */
void es_gate_hint(uint64_t now_ns);

/* Where it reads what this client uses; before there is a page, where nobody does. With the lock held. */
struct es_used *es_gate_used(void);

/* Whether others' gates may be open, too: then what passes between two markers is not this client's time alone. */
bool es_gate_others(void);

/* With the lock held: something is about to be submitted; nothing is queued any more. */
void es_gate_submits(uint64_t now_ns);
void es_gate_drained(uint64_t now_ns);

/* With the lock held: what other processes of the allocation have done with the device so far. */
uint64_t es_gate_siblings(void);

/* With the lock held: is anything queued of which nobody knows how long it takes? Beside siblings nothing is foretold anyway. */
bool es_gate_unseen(void);

/* With the lock held: whether others' work, or that of other processes of the allocation, may have run since es_gate_siblings
 * said this. */
bool es_gate_mixed(uint64_t siblings);

/* Whether nobody waits for this client to drain, as others' gates are open anyway: it keeps its grant over its pauses. */
bool es_gate_keeps(void);

/* Every thread asks anew at its next submission. With the lock held. */
void es_gate_forget_all(void);

/* Shuts the gate for this process alone, so that the helper can look; after it, submissions in progress are exactly
 * those whose slot is busy. False when the gate is not open. es_gate_resume opens it again. */
bool es_gate_pause(void);
void es_gate_resume(void);

/* Makes all cores pass a memory barrier (where the kernel cannot, before Linux 4.14, it waits long enough): what a thread
 * wrote before is then seen. */
void es_barrier_everywhere(void);

#endif
