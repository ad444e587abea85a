#ifndef EDGESHARE_SLOTS_H
#define EDGESHARE_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/state.h"
#include "core/times/overlap.h"
#include "core/times/passes.h"
#include "driver_api.h"

enum {
    ES_SLOTS = 1024, /* threads that submit; more than that take the slow path each time */
    ES_STREAMS = 64, /* streams told apart; a set of them is one word */
};

/* A submission that is let go at once is one that follows another of its batch: a run of launches between two markers.
 * What a thread has submitted since the last marker is its open batch. */
struct es_batch_open {
    uint64_t settled;  /* launches of the thread that are accounted for; the rest are this batch's */
    uint64_t streams;  /* that it touched: a set of places of ES_STREAMS */
    uint64_t drawn_ns; /* of the queue's cap: what it has used and what it still may; 0 when no batch is open */
    uint64_t opened_ns;
    uint64_t before_ns;      /* what had been submitted before it (es_timeline) */
    uint64_t ahead_ns;       /* … of which so much had not run, by its estimate */
    struct es_queued queued; /* then */
    uint64_t key;            /* of its first launch */
    uint64_t longest_ns;     /* the estimate of the longest of them */
    CUevent start;           /* recorded before its first launch, or NULL */
    uint64_t started_ns;     /* when that was done, until the launch has followed; 0: it has, or there is none */
    uint64_t behind_ns;      /* how long from there the device still ran what others had queued, or waited for the launch */
    uint64_t unsure_ns;      /* … of which it may have been running the launch for so long */
    uint64_t awaited_ns;     /* from then on it waited for nothing but the device to come to its context; 0: it did not */
    int start_context;
    bool shared;        /* launches of several keys */
    bool alone;         /* the one launch is being timed: nothing may join it */
    uint32_t grant;     /* under which it was opened; 0: without a manager */
    uint64_t waits;     /* how often the program had waited for the device when it was opened */
    bool fresh;         /* the device was idle when it was opened, and no start was recorded */
    bool reached;       /* … it had come to the start when the launch returned */
    bool first;         /* … it is the first of a grant, … */
    bool brief;         /* … and too short to be timed by a start that came too early */
    bool anew;          /* … it is measured from its start alone, which the device was seen to have come to */
    bool amid;          /* … it was not: other work was queued or about to be */
    bool held;          /* its first launch is behind a function of the host */
    bool stopped;       /* its stream stands still until its one launch is marked, … */
    uint64_t others_ns; /* … and what other threads had submitted when that began; UINT64_MAX: one was about to submit more */
    bool guessed;       /* of a launch no exact time is known */
    bool beside;        /* others' gates were open, too, when it was opened, or siblings used the device */
    uint64_t siblings;  /* what these had done then */
    bool last;          /* the launch that was just let go ends it */
    bool late;          /* it ends since the next launch came, which may have been after the device had run it */
};

/* One thread's. The first part is the thread's own, written without any synchronisation: others may read it (launches,
 * busy, word), and write it only while the gate is shut and busy is 0. The second part is under es_state_lock. */
struct es_slot {
    uint32_t busy;   /* calls of the driver that submit, in progress */
    uint32_t word;   /* the gate word under which the rest holds; 0: none */
    int64_t left_ns; /* what the open batch may still use; negative: nothing, ask */
    uint64_t launches;
    uint64_t wake_ns;         /* when it meant to wake for the launch that comes; 0: it did not */
    struct es_passes *passes; /* the thread's own, too; mapped when the slot is taken first, never NULL after that */

    struct es_batch_open batch;
    bool marking; /* its markers are being recorded just now */
    pid_t thread; /* 0: the slot is free */
} __attribute__((aligned(64)));

extern __thread struct es_slot *es_slot_self __attribute__((tls_model("initial-exec"), visibility("hidden")));

struct es_asked {
    uint64_t key;
    CUstream stream;
};

/* What the thread's last submission that could not go at once was. */
extern __thread struct es_asked es_asked __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* How many threads are where; under es_state_lock, but for the atomic. */
struct es_threads {
    uint32_t waiting ES_UNDER(es_state_lock); /* at the closed gate */
    uint32_t arriving; /* on the slow path, those at the gate among them: they submit as soon as they may; atomic */
};

extern struct es_threads es_threads __attribute__((visibility("hidden")));

/* The calling thread's slot, taken at its first use; NULL when there is none left. */
struct es_slot *es_slot_mine(void);

/* Is its thread within the driver, submitting? One that was cancelled there is not any more. */
bool es_slot_busy(struct es_slot *slot);

/* All slots that were ever taken: 0 <= i < es_slots_used(). */
struct es_slot *es_slot_at(size_t index);
size_t es_slots_used(void);

/* The thread forgets what it may submit without asking. */
static inline void es_slot_forget(struct es_slot *slot) { es_passes_forget(slot->passes); }

/* Every thread asks anew at its next submission. */
void es_slots_forget_words(void) ES_LOCKED(es_state_lock);

/* In a forked child: the parent's threads are not here. */
void es_slots_reset(void);

#endif
