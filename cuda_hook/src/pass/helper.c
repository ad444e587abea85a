#include "pass/helper.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>

#include "backlog/backlog.h"
#include "backlog/closed.h"
#include "backlog/submitted.h"
#include "base/kernel.h"
#include "base/log.h"
#include "base/state.h"
#include "core/tools/clock.h"
#include "driver/symbols.h"
#include "link/link.h"
#include "link/session.h"
#include "loader/thread.h"
#include "markers/batches.h"
#include "markers/collect.h"
#include "pass/drain.h"
#include "pass/grant.h"
#include "threads/slots.h"
#include "usage/measured.h"
#include "usage/thinks.h"

enum {
    CONTENDED_LOOK_NS = 150 * 1000,       /* with a rival waiting: how soon the end of a client's work is noticed */
    CONTENDED_SLEEP_NS = 5 * 1000 * 1000, /* … and how long one may sleep while enough is queued */
    CALL_TRIES = 8,                       /* the window between its last look and its sleep is some instructions long */
};

static bool started; /* atomic */
static bool parked;  /* atomic: asleep on the gate's word, or about to be */
static bool called;  /* atomic: is to look again before it sleeps */

/* What the helper remembers from one look to the next. */
struct look {
    uint64_t launches;
    uint64_t at_ns;
    uint64_t session_ns; /* when it looked after the manager */
    uint32_t number;     /* of the grant that it saw */
    uint64_t usage_ns;   /* when it saw that one first, or reported under it */
};

static void park(uint32_t seen, uint64_t timeout_ns) {
    __atomic_store_n(&parked, true, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&called, __ATOMIC_SEQ_CST))
        (void)es_gate_park(es_link.page, seen, timeout_ns);
    __atomic_store_n(&parked, false, __ATOMIC_SEQ_CST);
    __atomic_store_n(&called, false, __ATOMIC_SEQ_CST);
}

void es_helper_call(uint32_t owed) {
    if (!__atomic_load_n(&started, __ATOMIC_ACQUIRE)) {
        if (owed != 0)
            es_drain_give_back(owed, false);
        return;
    }
    __atomic_store_n(&called, true, __ATOMIC_SEQ_CST);
    /* It may be between its last look and its sleep: then there is nobody to wake yet. */
    for (int i = 0; i < CALL_TRIES && __atomic_load_n(&parked, __ATOMIC_SEQ_CST) && __atomic_load_n(&called, __ATOMIC_SEQ_CST);
         i++) {
        if (es_gate_call(es_link.page) > 0)
            return;
    }
}

/* The device is drained and nothing follows: gives the grant back of its own accord, unless something was submitted
 * meanwhile. */
static void give_back_idle(uint32_t number) {
    bool gone = false;

    if (!es_grant_pause())
        return;
    es_lock_take(&es_state_lock);
    if (__atomic_load_n(&es_threads.arriving, __ATOMIC_SEQ_CST) == 0 && es_submitted_drained() &&
        es_gate_number(es_gate_load(es_link.page)) == number)
        gone = es_grant_release(number, false);
    /* Until the next grant opens it again, the gate stays shut: the manager's word may say "held" a little longer. */
    if (gone)
        __atomic_store_n(&es_grant.paused, 0, __ATOMIC_RELEASE);
    es_lock_give(&es_state_lock);
    if (gone)
        es_wake_all(&es_grant.paused);
    else
        es_grant_resume();
}

/* Closes what threads have open, where any of it has been since then; false when none has, or the gate is shut already. */
static bool close_open(uint64_t since_ns) {
    bool open;

    es_lock_take(&es_state_lock);
    open = es_submitted_open(since_ns);
    es_lock_give(&es_state_lock);
    if (!open || !es_grant_pause())
        return false;
    (void)es_batches_close_all();
    es_grant_resume();
    return true;
}

/* Looks after the manager each 100 ms, and tells it the time used in each 100 ms of a grant; a RELEASE tells it, too. */
static void report(struct look *look, uint32_t number, uint64_t now_ns) {
    struct es_usage usage = {{ES_USAGE, sizeof(usage), number}, 0};

    if (now_ns - look->session_ns >= ES_LOOK_NS) {
        look->session_ns = now_ns;
        es_session_look();
    }
    if (look->number != number) {
        look->number = number;
        look->usage_ns = now_ns;
    }
    if (now_ns - look->usage_ns < ES_LOOK_NS)
        return;
    look->usage_ns = now_ns;
    /* Of short launches a batch takes long to be full; what is open for less is told of by the next report. */
    (void)close_open(now_ns - ES_LOOK_NS / 2);
    (void)es_collect();
    es_lock_take(&es_state_lock);
    usage.gpu_ns = es_measured.gpu_ns;
    if (es_mode_now() == ES_JOINED && es_session_send(&usage))
        es_measured.gpu_ns = 0;
    es_lock_give(&es_state_lock);
}

/* One look while a grant is held; returns how long to sleep. */
static uint64_t look_around(struct look *look, uint32_t word) {
    const bool contended = (word & ES_GATE_CONTENDED) != 0;
    const uint64_t period_ns = contended ? CONTENDED_LOOK_NS : ES_IDLE_NS;
    const uint64_t now_ns = es_now_ns();
    const uint64_t launches = es_submitted_launches();
    uint64_t idle_end_ns, queued_ns, sleep_ns = period_ns;
    uint32_t closed;
    bool drained, arriving, open;

    report(look, es_gate_number(word), now_ns);
    /* Of what no marker ends only the estimate says when those who wait may go on. */
    if (__atomic_load_n(&es_backlog.waiters, __ATOMIC_SEQ_CST) != 0 &&
        (es_collect_await() || (close_open(UINT64_MAX) && es_collect_await())))
        return 0;
    es_lock_take(&es_state_lock);
    /* Who is on its way to submit will: it neither thinks nor is it done. */
    drained = es_submitted_drained();
    arriving = __atomic_load_n(&es_threads.arriving, __ATOMIC_SEQ_CST) != 0;
    if (drained && !arriving) {
        if (es_thinks.idle_since_ns == 0)
            es_thinks.idle_since_ns = now_ns;
        es_link_drained(now_ns);
    }
    idle_end_ns = es_thinks.idle_since_ns + es_thinks_patience_ns(contended);
    closed = es_closed_count();
    queued_ns = es_queued_ns(now_ns);
    open = es_submitted_open(UINT64_MAX);
    es_lock_give(&es_state_lock);
    if (drained) {
        /* One that keeps its grant over its pauses is not to be taken for busy for long where it waits for nothing. */
        if (!arriving && now_ns < idle_end_ns)
            return idle_end_ns - now_ns < CONTENDED_SLEEP_NS || !es_link_keeps() ? idle_end_ns - now_ns : CONTENDED_SLEEP_NS;
        if (!arriving)
            give_back_idle(es_gate_number(word));
        return period_ns + es_link_before_ns(now_ns);
    }
    /* All that is queued ends at a marker: nothing more may come, so its end is the end. */
    if (contended && !open && closed > 0) {
        (void)es_collect_await();
        return 0;
    }
    /* While enough is queued nothing is to be seen; just before its end, a marker tells when that is. */
    if (contended && queued_ns > CONTENDED_LOOK_NS)
        sleep_ns = queued_ns - CONTENDED_LOOK_NS / 2;
    if (closed > 0 && (!open || launches == look->launches))
        (void)es_collect();
    /* Nothing was submitted for a while, but something is queued since the last marker. */
    if (sleep_ns == period_ns && launches == look->launches && now_ns - look->at_ns >= period_ns && close_open(UINT64_MAX)) {
        look->at_ns = now_ns;
        return contended ? 0 : period_ns;
    }
    if (launches != look->launches) {
        look->launches = launches;
        look->at_ns = now_ns;
    }
    return sleep_ns < CONTENDED_SLEEP_NS || !contended ? sleep_ns : CONTENDED_SLEEP_NS;
}

static void *run(void *nothing) {
    struct look look = {.session_ns = es_now_ns()};

    (void)nothing;
    es_kernel_name_thread("edgeshare");
    /* It sleeps for some ten microseconds at times. */
    es_kernel_sleep_exactly();
    for (;;) {
        const uint32_t word = es_gate_load(es_link.page);
        const uint32_t number = es_gate_number(word);
        /* The page of a manager that comes back takes this one's place, and wakes nobody who sleeps on this one. */
        uint64_t sleep_ns = es_mode_now() == ES_JOINED ? 10 * ES_LOOK_NS : ES_LOOK_NS;

        if (es_mode_now() == ES_JOINED && number != 0 && number != __atomic_load_n(&es_grant.released, __ATOMIC_RELAXED)) {
            if ((word & ES_GATE_HELD) == 0) {
                es_drain_give_back(number, true);
                continue;
            }
            sleep_ns = look_around(&look, word);
        }
        if (sleep_ns > 0)
            park(word, sleep_ns);
    }
    return NULL;
}

void es_helper_start(void) {
    sigset_t all, before;
    int error;

    if (__atomic_load_n(&started, __ATOMIC_RELAXED))
        return;
    /* For the thread, which inherits it; and a handler here would wait for a thread that is not there yet. */
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, &before);
    if (__atomic_exchange_n(&started, true, __ATOMIC_ACQ_REL)) {
        (void)sigprocmask(SIG_SETMASK, &before, NULL);
        return;
    }
    /* The thread calls the driver whenever it likes, also when the program has closed it. */
    es_driver_keep();
    error = es_thread_start(run);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    if (error != 0) {
        __atomic_store_n(&started, false, __ATOMIC_RELEASE);
        es_alarm("cannot start the thread that gives slices back (error %d); trying again at the next grant", error);
    }
}

ES_UNCHECKED void es_helper_reset(void) { started = parked = called = false; }
