#include "pass/gate.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backlog/submitted.h"
#include "base/life.h"
#include "driver/contexts.h"
#include "driver/symbols.h"
#include "link/session.h"
#include "markers/batches.h"
#include "markers/starts.h"
#include "markers/stops.h"
#include "pass/helper.h"
#include "pass/queue.h"

enum {
    LAUNCH_NS = 20 * 1000,     /* from waking to a launch on an idle machine, about */
    LEAD_MOST_NS = 200 * 1000, /* a thread that wakes later than that was put aside, and is not put aside each time */
};

struct es_gate es_gate;
const uint32_t es_word_shut = 0;
const uint32_t es_word_open = ES_GATE_HELD;
const uint32_t *es_gate_word = &es_word_shut;

static uint32_t word_now(void)
{
    return __atomic_load_n(__atomic_load_n(&es_gate_word, __ATOMIC_ACQUIRE), __ATOMIC_ACQUIRE);
}

void es_gate_forget_all(void)
{
    for (size_t i = 0; i < es_slots_used(); i++)
        __atomic_store_n(&es_slot_at(i)->word, 0, __ATOMIC_RELAXED);
}

static bool barrier(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void es_barrier_everywhere(void)
{
    static const uint32_t nobody;
    const int error = errno;

    /* A process asks for it once; a forked one anew. */
    if (!barrier() &&
        (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0 || !barrier())) {
        /* An older kernel, or a sandbox. What a core has written is seen by others within a microsecond or so. */
        es_sleep_on(&nobody, 0, ES_SETTLED_NS);
    }
    errno = error;
}

bool es_gate_pause(void)
{
    bool open;

    es_lock_take(&es_gate.lock);
    open = es_mode_now() == ES_JOINED && es_gate_word == &es_gate.page->word;
    if (open) {
        __atomic_store_n(&es_gate.paused, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&es_gate_word, &es_word_shut, __ATOMIC_RELEASE);
    }
    es_lock_give(&es_gate.lock);
    if (open)
        es_barrier_everywhere();
    return open;
}

void es_gate_resume(void)
{
    es_lock_take(&es_gate.lock);
    if (es_mode_now() == ES_JOINED)
        __atomic_store_n(&es_gate_word, &es_gate.page->word, __ATOMIC_RELEASE);
    __atomic_store_n(&es_gate.paused, 0, __ATOMIC_RELEASE);
    es_lock_give(&es_gate.lock);
    es_wake_all(&es_gate.paused);
}

/* With the lock held: what the manager should know of this client. */
void es_gate_hint(uint64_t now_ns)
{
    const uint64_t submitted_ns = es_submitted_ns();
    uint64_t backlog_ns;

    if (es_gate.hint == NULL)
        return;
    /* What may be submitted without a further word of this counts, too. */
    backlog_ns = es_queued_ns(now_ns) + es_unspent(es_gate_load(es_gate.page)).ns;
    __atomic_store_n(&es_gate.hint->backlog_ns, backlog_ns, __ATOMIC_RELAXED);
    /* The manager reads it as it calls the grant back. What is found out after that it is told by a record. */
    if ((es_gate_load(es_gate.page) & ES_GATE_HELD) != 0) {
        /* Siblings' work may be before what is queued here: then nobody knows. */
        const bool known = (es_gate_siblings() & 1) == 0 && !es_gate_unseen();
        const uint64_t ends_at_ns = known ? now_ns + backlog_ns + (uint64_t)es_gate.end_error_ns : 0;

        __atomic_store_n(&es_gate.hint->ends_at_ns, ends_at_ns, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&es_gate.hint->launches, es_launches(), __ATOMIC_RELAXED);
    __atomic_store_n(&es_gate.hint->waiting_threads, es_gate.waiting, __ATOMIC_RELAXED);
    es_used_pend(es_gate_used(), es_gate.beside.kept_ns + (submitted_ns > es_gate.over_ns ? submitted_ns - es_gate.over_ns : 0));
    __atomic_store_n(&es_gate.hint->hand_over_ns, (uint32_t)es_gate.hand_over_ns, __ATOMIC_RELAXED);
}

struct es_used *es_gate_used(void)
{
    static struct es_used nobodys;

    return es_gate.hint == NULL ? &nobodys : &es_gate.hint->used;
}

/* es_beside_flags; none where there is no manager. */
static uint32_t beside(void)
{
    return es_mode_now() == ES_JOINED ? __atomic_load_n(&es_gate.page->beside, __ATOMIC_RELAXED) : 0;
}

bool es_gate_others(void)
{
    return (beside() & ES_BESIDE_OTHERS) != 0;
}

void es_gate_submits(uint64_t now_ns)
{
    es_used_submit(es_gate_used(), now_ns);
    if (es_gate.siblings != NULL)
        es_siblings_use(es_gate.siblings, es_gate.page->place, true);
}

void es_gate_drained(uint64_t now_ns)
{
    es_used_drain(es_gate_used(), now_ns);
    if (es_gate.siblings != NULL)
        es_siblings_use(es_gate.siblings, es_gate.page->place, false);
}

uint64_t es_gate_siblings(void)
{
    return es_gate.siblings == NULL ? 0 : es_siblings_seen(es_gate.siblings, es_gate.page->place);
}

bool es_gate_unseen(void)
{
    return es_gate_siblings() == 0 && es_gate.over_ns < es_gate.unseen_ns && !es_batches_drained();
}

bool es_gate_mixed(uint64_t siblings)
{
    const uint64_t now = es_gate_siblings();

    return es_gate_others() || (now & 1) != 0 || now != siblings;
}

bool es_gate_keeps(void)
{
    return (beside() & (ES_BESIDE_OTHERS | ES_BESIDE_TELLS)) == ES_BESIDE_OTHERS;
}

/* With the lock held: asks for a slice. */
static void request(uint64_t now_ns)
{
    struct es_request record = {{ES_REQUEST, sizeof(record), 0}};

    es_gate.requested = es_session_send(&record);
    es_gate.introduced |= es_gate.requested;
    es_gate.requested_ns = now_ns;
}

/* What was queued does not drain, and may be waiting for what this thread is about to submit (a stream that waits for
 * another, say). The manager does not wait for that drain for ever, and has to know that somebody waits here. */
static void request_though_owed(uint32_t word)
{
    uint64_t now_ns;

    es_lock_take(&es_gate.lock);
    now_ns = es_now_ns();
    if (es_mode_now() == ES_JOINED && es_gate_load(es_gate.page) == word &&
        (!es_gate.requested || now_ns - es_gate.requested_ns > 1000 * ES_MS))
        request(now_ns);
    es_lock_give(&es_gate.lock);
}

/* Waits at the manager's closed gate, some time at most; asks for a slice when nobody has yet. */
static void wait_for_grant(void)
{
    uint64_t now_ns;
    uint32_t word;
    bool owed;
    int woken;

    es_lock_take(&es_gate.lock);
    if (es_mode_now() != ES_JOINED) {
        es_lock_give(&es_gate.lock);
        return;
    }
    now_ns = es_now_ns();
    word = es_gate_load(es_gate.page);
    if ((word & ES_GATE_HELD) != 0 && es_gate_number(word) != es_gate.released) {
        es_gate.requested = false;
        if (es_gate.paused == 0)
            __atomic_store_n(&es_gate_word, &es_gate.page->word, __ATOMIC_RELEASE);
        es_lock_give(&es_gate.lock);
        return;
    }
    /* A grant that was called back and not yet given back: the helper's RELEASE will say that somebody waits. */
    owed = es_gate_number(word) != 0 && es_gate_number(word) != es_gate.released;
    es_gate.waiting++;
    /* Asked anew each second: cheap, and no lost record can hang a program. */
    if (!owed && (!es_gate.requested || now_ns - es_gate.requested_ns > 1000 * ES_MS))
        request(now_ns);
    es_gate_hint(now_ns);
    es_used_wait(es_gate_used(), true, now_ns);
    es_lock_give(&es_gate.lock);
    if (owed)
        es_helper_call(es_gate_number(word));
    woken = es_gate_wait(es_gate.page, word, ES_LOOK_NS);
    es_lock_take(&es_gate.lock);
    es_gate.waiting--;
    es_used_wait(es_gate_used(), es_gate.waiting > 0, 0);
    es_lock_give(&es_gate.lock);
    if (woken == ETIMEDOUT) {
        es_session_look();
        if (owed)
            request_though_owed(word);
    }
}

/* The gate is shut, for one of several reasons; returns when that may have changed. */
static void wait_at_gate(struct es_slot *slot)
{
    if (slot != NULL)
        es_batch_close(slot, false);
    switch (es_mode_now()) {
    case ES_JOINED:
        if (__atomic_load_n(&es_gate.paused, __ATOMIC_ACQUIRE) != 0)
            es_sleep_on(&es_gate.paused, 1, ES_LOOK_NS);
        else
            wait_for_grant();
        break;
    case ES_AWAY: {
        const uint32_t seen = __atomic_load_n(&es_gate.progress, __ATOMIC_ACQUIRE);
        const uint64_t sleep_ns = es_session_away();

        if (sleep_ns > 0)
            es_sleep_on(&es_gate.progress, seen, sleep_ns);
        break;
    }
    default:
        break;
    }
}

/* Twice the longest hand-over that the manager believes in: a tenth of a slice of 5 ms (sharemgr/node/turns/hand_overs.py). */
enum { TO_AND_FRO_MOST_NS = 1000 * 1000 };

uint64_t es_gate_anticipation_ns(void)
{
    const uint64_t told_ns = __atomic_load_n(&es_gate.anticipation_ns, __ATOMIC_RELAXED);
    const uint64_t ns = 2 * __atomic_load_n(&es_gate.hand_over_ns, __ATOMIC_RELAXED);

    if (told_ns == 0 || ns <= told_ns)
        return told_ns;
    return ns < TO_AND_FRO_MOST_NS ? ns : TO_AND_FRO_MOST_NS;
}

uint64_t es_gate_before_ns(uint64_t now_ns)
{
    uint64_t free_at_ns;

    if (es_mode_now() != ES_JOINED)
        return 0;
    free_at_ns = __atomic_load_n(&es_gate.page->free_at_ns, __ATOMIC_RELAXED);
    return free_at_ns > now_ns ? free_at_ns - now_ns : 0;
}

/* The grant is of a time to come: waits until a launch would arrive as the device falls free. False when that is now. */
static bool wait_for_begin(struct es_slot *slot, uint32_t word)
{
    const uint64_t now_ns = es_now_ns();
    const uint64_t lead_ns = __atomic_load_n(&es_gate.lead_ns, __ATOMIC_RELAXED);
    const uint64_t before_ns = es_gate_before_ns(now_ns);
    uint64_t wait_ns;
    int woken;

    if (before_ns <= lead_ns)
        return false;
    wait_ns = before_ns - lead_ns < ES_LOOK_NS ? before_ns - lead_ns : ES_LOOK_NS;
    woken = es_gate_wait(es_gate.page, word, wait_ns);
    if (woken == ETIMEDOUT && wait_ns == ES_LOOK_NS)
        es_session_look();
    else if (slot != NULL)
        slot->wake_ns = woken == ETIMEDOUT ? now_ns + wait_ns : 0;
    return true;
}

/* A grant, or the word of one that goes on, that this thread has not seen. */
static void renew(struct es_slot *slot, uint32_t word)
{
    es_batch_close(slot, false);
    es_lock_take(&es_gate.lock);
    es_slot_forget(slot);
    __atomic_store_n(&slot->word, word, __ATOMIC_RELAXED);
    es_gate.requested = false;
    /* The gate may be open for another process of the allocation. */
    if (es_mode_now() == ES_JOINED && !es_gate.introduced)
        request(es_now_ns());
    es_lock_give(&es_gate.lock);
    if (es_mode_now() == ES_JOINED)
        es_helper_start();
}

static struct es_slot *admit(struct es_slot *slot, uint64_t key, CUstream stream)
{
    struct es_patience patience = {0};

    for (;;) {
        const uint32_t word = word_now();
        int index;

        if (es_mode_now() == ES_OUT)
            return NULL;
        if (es_mode_now() == ES_UNSHARED)
            (void)es_session_away();
        index = es_stream_index(stream);
        if (index == ES_STREAM_NONE)
            return NULL;
        if ((word & ES_GATE_HELD) == 0) {
            wait_at_gate(slot);
            patience.since_ns = 0;
            continue;
        }
        if ((slot == NULL || word != __atomic_load_n(&slot->word, __ATOMIC_RELAXED)) && wait_for_begin(slot, word))
            continue;
        if (slot == NULL || index == ES_STREAM_MANY)
            return NULL; /* more than can be told apart: gated, not counted */
        if (word != __atomic_load_n(&slot->word, __ATOMIC_RELAXED))
            renew(slot, word);
        if (index == ES_STREAM_LATER) {
            /* Without a place nothing marks its end: it would still run after the grant was given back. */
            if (es_queue_give_up(&patience, key) && word_now() == word)
                return NULL;
            continue;
        }
        if (!es_queue_take(slot, key, stream, index, word))
            continue;
        __atomic_store_n(&slot->busy, 1, __ATOMIC_RELAXED);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        if (word_now() == word && __atomic_load_n(&slot->word, __ATOMIC_RELAXED) == word) {
            __atomic_store_n(&slot->launches, slot->launches + 1, __ATOMIC_RELAXED);
            return slot;
        }
        __atomic_store_n(&slot->busy, 0, __ATOMIC_RELAXED);
        es_stop_end(slot);
    }
}

static __attribute__((noinline)) uintptr_t ask(void)
{
    const struct es_asked asked = es_asked;
    const int error = errno;
    struct es_slot *slot;

    if (es_mode_now() == ES_OUT || !es_driver_find())
        return ES_ASKED;
    es_session_join();
    if (es_mode_now() == ES_OUT || es_life_apart())
        return ES_ASKED;
    slot = es_slot_mine();
    /* A call from within the driver, or from a handler that interrupted one. */
    if (slot != NULL && slot->busy != 0)
        return ES_ASKED;
    __atomic_fetch_add(&es_gate.arriving, 1, __ATOMIC_SEQ_CST);
    es_batches_return();
    slot = admit(slot, asked.key, asked.stream);
    __atomic_fetch_sub(&es_gate.arriving, 1, __ATOMIC_SEQ_CST);
    errno = error;
    return (uintptr_t)slot | ES_ASKED;
}

uintptr_t es_gate_ask(void)
{
    struct es_slot *slot = es_slot_self;

    if (slot != NULL && slot->busy == 0 && es_queue_join(slot, es_asked.key, es_asked.stream))
        return (uintptr_t)slot;
    return ask();
}

/* Takes in how long after the time it meant to wake at a thread had launched. Late ones weigh more, as the device idles
 * meanwhile; but long ones count little: the thread was put aside, which says nothing of the next time. */
static void learn_lead(uint64_t ns)
{
    uint64_t lead_ns;

    es_lock_take(&es_gate.lock);
    lead_ns = es_gate.lead_ns;
    if (ns > 2 * lead_ns + LAUNCH_NS)
        ns = 2 * lead_ns + LAUNCH_NS;
    if (ns > lead_ns)
        lead_ns += (ns - lead_ns) / 4;
    else
        lead_ns -= (lead_ns - ns) / 8;
    __atomic_store_n(&es_gate.lead_ns, lead_ns < LEAD_MOST_NS ? lead_ns : LEAD_MOST_NS, __ATOMIC_RELAXED);
    es_lock_give(&es_gate.lock);
}

void es_gate_answered(uintptr_t passed)
{
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
    errno = error;
}
