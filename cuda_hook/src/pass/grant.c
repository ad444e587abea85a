#include "pass/grant.h"

#include "base/barrier.h"
#include "base/state.h"
#include "core/tools/clock.h"
#include "link/link.h"
#include "link/session.h"
#include "threads/slots.h"
#include "usage/measured.h"

struct es_grant es_grant;

enum { ALONE_MOST_NS = 1000 * 1000 }; /* for which one keeps all others out: it takes some ten microseconds */

void es_grant_begin(void) {
    __atomic_store_n(&es_grant.released, 0, __ATOMIC_RELAXED);
    es_grant.requested = false;
    es_grant.introduced = false;
}

void es_grant_request(uint64_t now_ns) {
    struct es_request record = {{ES_REQUEST, sizeof(record), 0}};

    es_grant.requested = es_session_send(&record);
    es_grant.introduced |= es_grant.requested;
    es_grant.requested_ns = now_ns;
}

bool es_grant_release(uint32_t number, bool foretold) {
    /* Who is on its way will wait at the gate. */
    const uint32_t follows = __atomic_load_n(&es_threads.arriving, __ATOMIC_SEQ_CST) > 0 ? ES_RELEASE_FOLLOWS : 0;
    struct es_release record = {{ES_RELEASE, sizeof(record), number}, es_measured.gpu_ns, follows, 0};

    if (!(foretold && es_hint_leave(es_link.hint, es_link.page, &record)) && !es_session_send(&record))
        return false;
    es_grant.released = number;
    es_grant.requested = follows != 0;
    es_grant.requested_ns = es_now_ns();
    es_measured.gpu_ns = 0;
    return true;
}

ES_UNCHECKED void es_grant_reset(void) { es_grant = (struct es_grant){.released = 0}; }

/* Its thread has died, or does not come back from a call. */
ES_LOCKED(es_state_lock) static bool is_overdue(void) {
    return es_grant.pauser != NULL && es_now_ns() - es_grant.paused_ns > ALONE_MOST_NS;
}

/* For all threads, or all but one. */
static bool pause_for(const struct es_slot *slot) {
    bool open;

    es_lock_take(&es_state_lock);
    open = es_mode_now() == ES_JOINED && (es_link_word == &es_link.page->word || is_overdue());
    if (open) {
        es_grant.paused_ns = es_now_ns();
        __atomic_store_n(&es_grant.pauser, slot, __ATOMIC_RELAXED);
        __atomic_store_n(&es_grant.paused, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&es_link_word, &es_word_shut, __ATOMIC_RELEASE);
    }
    es_lock_give(&es_state_lock);
    if (open)
        es_barrier_everywhere();
    return open;
}

bool es_grant_pause(void) { return pause_for(NULL); }

bool es_grant_exclude(const struct es_slot *slot) { return pause_for(slot); }

/* Ends the pause that a thread made, or NULL that for all: at once, or where it is overdue. */
static void end(const struct es_slot *slot, bool overdue) {
    bool ends;

    es_lock_take(&es_state_lock);
    ends = es_grant.pauser == slot && (!overdue || is_overdue());
    if (ends) {
        __atomic_store_n(&es_grant.pauser, NULL, __ATOMIC_RELAXED);
        if (es_mode_now() == ES_JOINED)
            __atomic_store_n(&es_link_word, &es_link.page->word, __ATOMIC_RELEASE);
        __atomic_store_n(&es_grant.paused, 0, __ATOMIC_RELEASE);
    }
    es_lock_give(&es_state_lock);
    if (ends)
        es_wake_all(&es_grant.paused);
}

void es_grant_resume(void) { end(NULL, false); }

void es_grant_include(const struct es_slot *slot) {
    if (__atomic_load_n(&es_grant.pauser, __ATOMIC_RELAXED) == slot)
        end(slot, false);
}

void es_grant_await(void) {
    const struct es_slot *pauser = __atomic_load_n(&es_grant.pauser, __ATOMIC_RELAXED);

    es_sleep_on(&es_grant.paused, 1, pauser != NULL ? ALONE_MOST_NS : ES_LOOK_NS);
    if (pauser != NULL)
        end(pauser, true);
}

bool es_grant_lasts(const struct es_slot *slot, uint32_t word) {
    const bool alone = __atomic_load_n(&es_grant.pauser, __ATOMIC_RELAXED) == slot;
    const uint32_t *now = alone ? &es_link.page->word : __atomic_load_n(&es_link_word, __ATOMIC_ACQUIRE);

    return __atomic_load_n(now, __ATOMIC_ACQUIRE) == word;
}
