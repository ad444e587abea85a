#include "pass/grant.h"

#include "base/barrier.h"
#include "base/state.h"
#include "core/tools/clock.h"
#include "link/link.h"
#include "link/session.h"
#include "threads/slots.h"
#include "usage/measured.h"

struct es_grant es_grant;

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

bool es_grant_pause(void) {
    bool open;

    es_lock_take(&es_state_lock);
    open = es_mode_now() == ES_JOINED && es_link_word == &es_link.page->word;
    if (open) {
        __atomic_store_n(&es_grant.paused, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&es_link_word, &es_word_shut, __ATOMIC_RELEASE);
    }
    es_lock_give(&es_state_lock);
    if (open)
        es_barrier_everywhere();
    return open;
}

void es_grant_resume(void) {
    es_lock_take(&es_state_lock);
    if (es_mode_now() == ES_JOINED)
        __atomic_store_n(&es_link_word, &es_link.page->word, __ATOMIC_RELEASE);
    __atomic_store_n(&es_grant.paused, 0, __ATOMIC_RELEASE);
    es_lock_give(&es_state_lock);
    es_wake_all(&es_grant.paused);
}
