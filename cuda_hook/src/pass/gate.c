#include "pass/gate.h"

#include <errno.h>

#include "base/life.h"
#include "base/state.h"
#include "core/tools/clock.h"
#include "driver/streams.h"
#include "driver/symbols.h"
#include "link/joining.h"
#include "link/session.h"
#include "markers/batches.h"
#include "markers/starts.h"
#include "markers/stops.h"
#include "pass/follow.h"
#include "pass/grant.h"
#include "pass/helper.h"
#include "pass/places.h"
#include "pass/queue.h"
#include "usage/hint.h"
#include "usage/thinks.h"

enum {
    LAUNCH_NS = 20 * 1000,     /* from waking to a launch on an idle machine, about */
    LEAD_MOST_NS = 200 * 1000, /* a thread that wakes later than that was put aside, and is not put aside each time */
};

static uint32_t word_now(void) { return __atomic_load_n(__atomic_load_n(&es_link_word, __ATOMIC_ACQUIRE), __ATOMIC_ACQUIRE); }

/* What was queued does not drain, and may be waiting for what this thread is about to submit (a stream that waits for
 * another, say). The manager does not wait for that drain for ever, and has to know that somebody waits here. */
static void request_though_owed(uint32_t word) {
    uint64_t now_ns;

    es_lock_take(&es_state_lock);
    now_ns = es_now_ns();
    if (es_mode_now() == ES_JOINED && es_gate_load(es_link.page) == word &&
        (!es_grant.requested || now_ns - es_grant.requested_ns > 1000 * ES_MS))
        es_grant_request(now_ns);
    es_lock_give(&es_state_lock);
}

/* Waits at the manager's closed gate, some time at most; asks for a slice when nobody has yet. */
static void wait_for_grant(void) {
    uint64_t now_ns;
    uint32_t word;
    bool owed;
    int woken;

    es_lock_take(&es_state_lock);
    if (es_mode_now() != ES_JOINED) {
        es_lock_give(&es_state_lock);
        return;
    }
    now_ns = es_now_ns();
    word = es_gate_load(es_link.page);
    if ((word & ES_GATE_HELD) != 0 && es_gate_number(word) != es_grant.released) {
        es_grant.requested = false;
        if (es_grant.paused == 0)
            __atomic_store_n(&es_link_word, &es_link.page->word, __ATOMIC_RELEASE);
        es_lock_give(&es_state_lock);
        return;
    }
    /* A grant that was called back and not yet given back: the helper's RELEASE will say that somebody waits. */
    owed = es_gate_number(word) != 0 && es_gate_number(word) != es_grant.released;
    es_threads.waiting++;
    /* Asked anew each second: cheap, and no lost record can hang a program. */
    if (!owed && (!es_grant.requested || now_ns - es_grant.requested_ns > 1000 * ES_MS))
        es_grant_request(now_ns);
    es_hint_write(now_ns);
    es_used_wait(es_link_used(), true, now_ns);
    es_lock_give(&es_state_lock);
    if (owed)
        es_helper_call(es_gate_number(word));
    woken = es_gate_wait(es_link.page, word, ES_LOOK_NS);
    es_lock_take(&es_state_lock);
    es_threads.waiting--;
    es_used_wait(es_link_used(), es_threads.waiting > 0, 0);
    es_lock_give(&es_state_lock);
    if (woken == ETIMEDOUT) {
        es_session_look();
        if (owed)
            request_though_owed(word);
    }
}

/* The gate is shut, for one of several reasons; returns when that may have changed. */
static void wait_at_gate(struct es_slot *slot) {
    if (slot != NULL)
        es_batch_close(slot, false);
    switch (es_mode_now()) {
    case ES_JOINED:
        if (__atomic_load_n(&es_grant.paused, __ATOMIC_ACQUIRE) != 0)
            es_grant_await();
        else
            wait_for_grant();
        break;
    case ES_AWAY: {
        const uint32_t seen = es_progress_seen();
        const uint64_t sleep_ns = es_join_again();

        if (sleep_ns > 0)
            es_progress_wait(seen, sleep_ns);
        break;
    }
    default: break;
    }
}

/* The grant is of a time to come: waits until a launch would arrive as the device falls free. False when that is now. */
static bool wait_for_begin(struct es_slot *slot, uint32_t word) {
    const uint64_t now_ns = es_now_ns();
    const uint64_t lead_ns = __atomic_load_n(&es_grant.lead_ns, __ATOMIC_RELAXED);
    const uint64_t before_ns = es_link_before_ns(now_ns);
    uint64_t wait_ns;
    int woken;

    if (before_ns <= lead_ns)
        return false;
    wait_ns = before_ns - lead_ns < ES_LOOK_NS ? before_ns - lead_ns : ES_LOOK_NS;
    woken = es_gate_wait(es_link.page, word, wait_ns);
    if (woken == ETIMEDOUT && wait_ns == ES_LOOK_NS)
        es_session_look();
    else if (slot != NULL)
        slot->wake_ns = woken == ETIMEDOUT ? now_ns + wait_ns : 0;
    return true;
}

/* A grant, or the word of one that goes on, that this thread has not seen. */
static void renew(struct es_slot *slot, uint32_t word) {
    es_batch_close(slot, false);
    es_lock_take(&es_state_lock);
    es_slot_forget(slot);
    __atomic_store_n(&slot->word, word, __ATOMIC_RELAXED);
    es_grant.requested = false;
    /* The gate may be open for another process of the allocation. */
    if (es_mode_now() == ES_JOINED && !es_grant.introduced)
        es_grant_request(es_now_ns());
    es_lock_give(&es_state_lock);
    if (es_mode_now() == ES_JOINED)
        es_helper_start();
}

static struct es_slot *admit(struct es_slot *slot, uint64_t key, CUstream stream) {
    struct es_patience patience = {0};

    for (;;) {
        const uint32_t word = word_now();
        int number;

        if (es_mode_now() == ES_OUT)
            return NULL;
        if (es_mode_now() == ES_UNSHARED)
            (void)es_join_again();
        number = es_place_of(stream);
        if (number == ES_STREAM_NONE)
            return NULL;
        if ((word & ES_GATE_HELD) == 0) {
            wait_at_gate(slot);
            patience.since_ns = 0;
            continue;
        }
        if ((slot == NULL || word != __atomic_load_n(&slot->word, __ATOMIC_RELAXED)) && wait_for_begin(slot, word))
            continue;
        if (slot == NULL || number == ES_STREAM_MANY)
            return NULL; /* more than can be told apart: gated, not counted */
        if (word != __atomic_load_n(&slot->word, __ATOMIC_RELAXED))
            renew(slot, word);
        if (number == ES_STREAM_LATER) {
            /* Without a place nothing marks its end: it would still run after the grant was given back. */
            if (es_place_give_up(&patience, key) && word_now() == word)
                return NULL;
            continue;
        }
        if (!es_queue_take(slot, key, stream, number, word))
            continue;
        __atomic_store_n(&slot->busy, 1, __ATOMIC_RELAXED);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        if (es_grant_lasts(slot, word) && __atomic_load_n(&slot->word, __ATOMIC_RELAXED) == word) {
            __atomic_store_n(&slot->launches, slot->launches + 1, __ATOMIC_RELAXED);
            return slot;
        }
        __atomic_store_n(&slot->busy, 0, __ATOMIC_RELAXED);
        es_stop_end(slot);
        es_grant_include(slot);
    }
}

static __attribute__((noinline)) uintptr_t ask(void) {
    const struct es_asked asked = es_asked;
    const int error = errno;
    struct es_slot *slot;

    if (es_mode_now() == ES_OUT || !es_driver_find())
        return ES_ASKED;
    es_join();
    if (es_mode_now() == ES_OUT || es_life_apart())
        return ES_ASKED;
    slot = es_slot_mine();
    /* A call from within the driver, or from a handler that interrupted one. */
    if (slot != NULL && slot->busy != 0)
        return ES_ASKED;
    __atomic_fetch_add(&es_threads.arriving, 1, __ATOMIC_SEQ_CST);
    es_thinks_return();
    slot = admit(slot, asked.key, asked.stream);
    __atomic_fetch_sub(&es_threads.arriving, 1, __ATOMIC_SEQ_CST);
    errno = error;
    return (uintptr_t)slot | ES_ASKED;
}

uintptr_t es_gate_ask(void) {
    struct es_slot *slot = es_slot_self;

    if (slot != NULL && slot->busy == 0 && es_follow(slot, es_asked.key, es_asked.stream))
        return (uintptr_t)slot;
    return ask();
}

/* Takes in how long after the time it meant to wake at a thread had launched. Late ones weigh more, as the device idles
 * meanwhile; but long ones count little: the thread was put aside, which says nothing of the next time. On the virtual
 * clock the median hand-over between two clients that saturate the device (kernels of 20 us to 10 ms) took 5 to 8 us
 * longer without this, 35 to 39 at the pace `workstation`, 32 to 52 at `jetson`: what a thread needs to wake and launch. */
static void learn_lead(uint64_t ns) {
    uint64_t lead_ns;

    es_lock_take(&es_state_lock);
    lead_ns = es_grant.lead_ns;
    if (ns > 2 * lead_ns + LAUNCH_NS)
        ns = 2 * lead_ns + LAUNCH_NS;
    if (ns > lead_ns)
        lead_ns += (ns - lead_ns) / 4;
    else
        lead_ns -= (lead_ns - ns) / 8;
    __atomic_store_n(&es_grant.lead_ns, lead_ns < LEAD_MOST_NS ? lead_ns : LEAD_MOST_NS, __ATOMIC_RELAXED);
    es_lock_give(&es_state_lock);
}

void es_gate_answered(uintptr_t passed) {
    struct es_slot *slot = (struct es_slot *)(passed & ~(uintptr_t)ES_ASKED);
    const int error = errno;
    bool last;

    if (slot == NULL)
        return;
    /* Once it is not busy any more, the batch may be taken from it. */
    last = slot->batch.last;
    if (slot->batch.started_ns != 0)
        es_start_followed(slot);
    es_gate_passed((uintptr_t)slot);
    if (slot->wake_ns != 0) {
        learn_lead(es_now_ns() - slot->wake_ns);
        slot->wake_ns = 0;
    }
    if (last)
        es_batch_close(slot, false);
    es_grant_include(slot);
    errno = error;
}
