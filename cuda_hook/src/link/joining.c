#include "link/joining.h"

#include <errno.h>

#include "base/events.h"
#include "base/life.h"
#include "base/log.h"
#include "base/settings.h"
#include "base/state.h"
#include "core/tools/clock.h"
#include "link/allocation.h"
#include "link/channel.h"
#include "link/greeting.h"
#include "link/link.h"
#include "link/pages.h"
#include "link/session.h"
#include "threads/slots.h"

enum {
    UNSHARED_TRY_NS = 1000 * 1000 * 1000,
    /* Who comes back waits so long for a WELCOME, and looks for it again later: a hung manager holds nobody up. */
    GREETING_MS = 10,
    SOCKET_PATH_BYTES = 108, /* unix(7), with the zero at its end */
};

static struct es_channel greeted = {.fd = -1}; /* HELLO was said over it, and is not answered yet */
static bool trying;                            /* atomic: one thread at a time tries to join again */
static int barred; /* atomic: why no manager could be connected to, be there one or not; 0: there was none */
static bool barred_told ES_UNDER(es_state_lock);

/* Takes the WELCOME's pages and terms; the mode changes to ES_JOINED. */
static bool accept_welcome(const struct es_welcome *welcome, const int fds[ES_FDS]) {
    uint64_t now_ns;

    /* No bytes may be put into a page of the one session that are of the other. */
    es_on_welcome();
    if (!es_pages_replace(fds)) {
        es_on_welcomed();
        return false;
    }
    es_lock_take(&es_state_lock);
    /* Read without the lock, so written once. */
    if (es_link.page == NULL) {
        es_link.hint = es_pages_hint();
        es_link.page = es_pages_gate();
    }
    es_link.siblings = es_pages_siblings();
    es_link.config.failure_policy = welcome->failure_policy;
    es_link.config.grace_ms = welcome->grace_ms;
    es_link.config.memory_cap_bytes = welcome->memory_cap_bytes;
    __atomic_store_n(&es_link.epoch, welcome->epoch, __ATOMIC_RELAXED);
    es_link.queue_cap_ns = welcome->queue_cap_ns;
    __atomic_store_n(&es_link.anticipation_ns, welcome->anticipation_ns, __ATOMIC_RELAXED);
    es_link.ignore_managed = (welcome->flags & ES_WELCOME_IGNORE_MANAGED) != 0;
    es_session_open(greeted);
    greeted.fd = -1;
    es_slots_forget_words();
    __atomic_store_n(&es_link_word, &es_link.page->word, __ATOMIC_RELEASE);
    now_ns = es_now_ns();
    es_absence_joined(&es_link.absence, now_ns);
    es_on_session(now_ns);
    __atomic_store_n(&es_link.mode, ES_JOINED, __ATOMIC_RELEASE);
    es_lock_give(&es_state_lock);
    es_on_welcomed();
    return true;
}

/* Says HELLO, unless that was said and may still be answered. */
static bool greet(void) {
    char path[SOCKET_PATH_BYTES];

    if (es_channel_there(&greeted))
        return true;
    if (!es_allocation_path(path, sizeof(path), "hook.sock")) {
        es_alarm("%s is too long a path for a socket: %d bytes are the most", es_setting_folder(), SOCKET_PATH_BYTES);
        return false;
    }
    if (!es_channel_open(&greeted, path)) {
        __atomic_store_n(&barred, es_channel_nobody_listens(errno) ? 0 : errno, __ATOMIC_RELAXED);
        return false;
    }
    __atomic_store_n(&barred, 0, __ATOMIC_RELAXED);
    if (es_greet_begin(&greeted, ES_ACCELERATOR_GPU))
        return true;
    es_channel_close(&greeted);
    return false;
}

/* One try to join, by one thread at a time. Not where there is no manager now, or none that answers so soon: then the next
 * try goes on with this one. */
static enum es_greeted try_to_join(int patience_ms) {
    enum es_greeted came;

    if (!greet() || !es_channel_readable(&greeted, patience_ms))
        return ES_GREETED_NOT;
    came = es_greet_end(&greeted, "GPU", accept_welcome);
    if (came == ES_GREETED_NOT || came == ES_GREETED_REFUSED)
        es_channel_close(&greeted);
    if (came == ES_GREETED_JOINED) {
        es_log("joined %s", es_setting_folder());
        es_on_joined();
    }
    return came;
}

/* The manager lives and does not let this process in, or not yet: nothing runs past it, nor what ran on without it
 * meanwhile. */
static void hold_back(enum es_greeted came) {
    es_lock_take(&es_state_lock);
    if (came == ES_GREETED_REFUSED)
        (void)es_absence_refused(&es_link.absence, es_now_ns());
    else
        es_absence_put_off(&es_link.absence, es_now_ns());
    if (es_mode_now() == ES_UNSHARED) {
        __atomic_store_n(&es_link_word, &es_word_shut, __ATOMIC_RELEASE);
        __atomic_store_n(&es_link.mode, ES_AWAY, __ATOMIC_RELEASE);
    }
    es_lock_give(&es_state_lock);
}

static void begin(void) {
    enum es_greeted came;

    errno = 0;
    if (!es_allocation_exists()) {
        if (errno == EACCES)
            es_alarm("this user may not enter %s: if an allocation is there, this process runs outside of its share",
                     es_setting_folder());
        es_log("there is no %s: this process has no allocation, the hook stays out of its way", es_setting_folder());
        __atomic_store_n(&es_link.mode, ES_OUT, __ATOMIC_RELEASE);
        return;
    }
    es_allocation_config(&es_link.config);
    came = try_to_join(ES_ANSWER_MS);
    if (came == ES_GREETED_JOINED)
        return;
    es_absence_begin(&es_link.absence, es_now_ns(), es_link_grace_ns());
    __atomic_store_n(&es_link.mode, ES_AWAY, __ATOMIC_RELEASE);
    if (came != ES_GREETED_NOT)
        hold_back(came);
    else
        es_log("there is no manager at %s yet; launches wait at most %u ms for it", es_setting_folder(), es_link.config.grace_ms);
}

void es_join(void) {
    const int error = errno;

    if (es_life_begin()) {
        begin();
        es_life_begun();
    }
    errno = error;
}

void es_join_anew(void) {
    const int error = errno;

    if (es_life_forget()) {
        es_channel_close(&greeted);
        trying = false;
        es_on_forked();
        es_life_forgotten();
    }
    errno = error;
    es_join();
}

uint64_t es_join_again(void) {
    enum es_greeted came = ES_GREETED_NOT;
    bool over;
    int error;

    es_locks_hold();
    if (es_now_ns() >= __atomic_load_n(&es_link.absence.next_try_ns, __ATOMIC_RELAXED) &&
        !__atomic_exchange_n(&trying, true, __ATOMIC_ACQUIRE)) {
        /* Another thread may have joined since this one saw that there is no session. */
        came = es_mode_now() == ES_JOINED ? ES_GREETED_JOINED : try_to_join(GREETING_MS);
        if (came == ES_GREETED_WAITS || came == ES_GREETED_REFUSED)
            hold_back(came);
        if (came == ES_GREETED_NOT || came == ES_GREETED_WAITS)
            __atomic_store_n(&es_link.absence.next_try_ns,
                             es_now_ns() + (es_mode_now() == ES_UNSHARED ? UNSHARED_TRY_NS : ES_TRY_NS), __ATOMIC_RELAXED);
        __atomic_store_n(&trying, false, __ATOMIC_RELEASE);
    }
    es_locks_drop();
    es_lock_take(&es_state_lock);
    over = came != ES_GREETED_JOINED && es_mode_now() == ES_AWAY &&
           es_absence_over(&es_link.absence, es_now_ns(), es_link_grace_ns());
    error = __atomic_load_n(&barred, __ATOMIC_RELAXED);
    if (over && error != 0 && !barred_told) {
        barred_told = true;
        es_alarm("this process cannot connect to a manager at %s (error %d), be there one or not: without it %s",
                 es_setting_folder(), error,
                 es_link.config.failure_policy == ES_FAIL_OPEN ? "it runs outside of its share" : "its launches wait");
    }
    if (over && es_link.config.failure_policy == ES_FAIL_OPEN) {
        __atomic_store_n(&es_link_word, &es_word_open, __ATOMIC_RELEASE);
        __atomic_store_n(&es_link.mode, ES_UNSHARED, __ATOMIC_RELEASE);
        es_log("no manager for %u ms: running on unshared until it is back", es_link.config.grace_ms);
    }
    es_lock_give(&es_state_lock);
    if (es_mode_now() != ES_AWAY) {
        es_progress_count();
        es_progress_wake();
        return 0;
    }
    return ES_TRY_NS;
}
