#include "pass/grant.h"

#include "base/barrier.h"
#include "base/state.h"
#include "link/link.h"

struct es_grant es_grant;

void es_grant_begin(void)
{
    __atomic_store_n(&es_grant.released, 0, __ATOMIC_RELAXED);
    es_grant.requested = false;
    es_grant.introduced = false;
}

void es_grant_reset(void)
{
    es_grant = (struct es_grant){.released = 0};
}

bool es_grant_pause(void)
{
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

void es_grant_resume(void)
{
    es_lock_take(&es_state_lock);
    if (es_mode_now() == ES_JOINED)
        __atomic_store_n(&es_link_word, &es_link.page->word, __ATOMIC_RELEASE);
    __atomic_store_n(&es_grant.paused, 0, __ATOMIC_RELEASE);
    es_lock_give(&es_state_lock);
    es_wake_all(&es_grant.paused);
}
