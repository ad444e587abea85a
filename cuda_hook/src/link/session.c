#include "link/session.h"

#include <errno.h>
#include <string.h>

#include "api/virtual.h"
#include "base/life.h"
#include "base/log.h"
#include "base/settings.h"
#include "core/absence.h"
#include "driver/contexts.h"
#include "driver/streams.h"
#include "link/allocation.h"
#include "link/channel.h"
#include "link/greeting.h"
#include "link/pages.h"
#include "markers/batches.h"
#include "markers/collect.h"
#include "markers/stops.h"
#include "memory/account.h"
#include "memory/graph_memory.h"
#include "memory/pools.h"
#include "pass/gate.h"
#include "pass/helper.h"
#include "threads/slots.h"

enum {
    UNSHARED_TRY_NS = 1000 * 1000 * 1000,
    GREETING_MS = 10, /* who comes back waits so long for a WELCOME, and looks for it again later: a hung manager holds nobody up */
    SOCKET_PATH_BYTES = 108, /* unix(7), with the zero at its end */
};

static struct es_channel channel = {.fd = -1};
static struct es_channel greeted = {.fd = -1}; /* HELLO was said over it, and is not answered yet */
static struct es_absence absence;
static struct es_lock asking;  /* one question at a time; held while waiting for the answer */
static uint32_t last_number;
static bool trying;            /* atomic: one thread at a time tries to join again */

static uint64_t grace_ns(void)
{
    return es_gate.config.grace_ms * ES_MS;
}

/* With the gate's lock held: ends the session. The manager's books of it end with the connection, and what this process
 * has it declares in the next one; so whatever was not heard or not said in a session ends it. */
static void lose(const char *why)
{
    if (es_mode_now() != ES_JOINED)
        return;
    es_channel_end(&channel);
    __atomic_store_n(&es_gate_word, &es_word_shut, __ATOMIC_RELEASE);
    __atomic_store_n(&es_gate.mode, ES_AWAY, __ATOMIC_RELEASE);
    es_absence_begin(&absence, es_now_ns(), grace_ns());
    es_log("the manager went away (%s); launches wait at most %u ms for it", why, es_gate.config.grace_ms);
    if (absence.cut_short == 1)
        es_alarm("sessions with the manager end again and again (%s): its log may say why; this process now tries less "
                 "often, and goes on as without a manager", why);
}

void es_session_end(const char *why)
{
    es_lock_take(&es_gate.lock);
    lose(why);
    es_lock_give(&es_gate.lock);
}

bool es_session_send(void *record)
{
    const int before = errno;
    const int error = es_channel_send(&channel, record, ((const struct es_header *)record)->size);

    /* EAGAIN: it reads too slowly just now, the caller tries again later. */
    if (error != 0 && error != EAGAIN)
        lose(error == EBADF ? "its socket was closed by the program" : "nothing can be sent to it");
    errno = before;
    return error == 0;
}

/* With the gate's lock held: what a fresh page says of its use of the device begins with what is queued and waits now. */
static void begin_used(uint64_t now_ns)
{
    es_used_wait(es_gate_used(), es_gate.waiting > 0, now_ns);
    if (es_batches_drained())
        es_gate_drained(now_ns);
    else
        es_gate_submits(now_ns);
}

/* Takes the WELCOME's pages and terms; the mode changes to ES_JOINED. */
static bool accept_welcome(const struct es_welcome *welcome, const int fds[ES_FDS])
{
    uint64_t now_ns;

    /* No bytes may be put into a page of the one session that are of the other. */
    es_account_hold();
    if (!es_pages_replace(fds)) {
        es_account_let();
        return false;
    }
    es_lock_take(&es_gate.lock);
    channel = greeted;
    greeted.fd = -1;
    /* Read without the lock, so written once. */
    if (es_gate.page == NULL) {
        es_gate.hint = es_pages_hint();
        es_gate.page = es_pages_gate();
    }
    es_gate.siblings = es_pages_siblings();
    es_gate.config = (struct es_config){welcome->failure_policy, welcome->grace_ms, welcome->memory_cap_bytes};
    __atomic_store_n(&es_gate.epoch, welcome->epoch, __ATOMIC_RELAXED);
    es_gate.queue_cap_ns = welcome->queue_cap_ns;
    __atomic_store_n(&es_gate.anticipation_ns, welcome->anticipation_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&es_gate.released, 0, __ATOMIC_RELAXED);
    es_gate.requested = false;
    es_gate.introduced = false;
    es_gate.gpu_ns = 0;
    es_gate.ignore_managed = (welcome->flags & ES_WELCOME_IGNORE_MANAGED) != 0;
    __atomic_add_fetch(&es_gate.session, 1, __ATOMIC_RELEASE);
    es_gate_forget_all();
    __atomic_store_n(&es_gate_word, &es_gate.page->word, __ATOMIC_RELEASE);
    now_ns = es_now_ns();
    es_absence_joined(&absence, now_ns);
    begin_used(now_ns);
    __atomic_store_n(&es_gate.mode, ES_JOINED, __ATOMIC_RELEASE);
    es_lock_give(&es_gate.lock);
    es_account_let();
    return true;
}

/* Says HELLO, unless that was said and may still be answered. */
static bool greet(void)
{
    char path[SOCKET_PATH_BYTES];

    if (es_channel_there(&greeted))
        return true;
    if (!es_allocation_path(path, sizeof(path), "hook.sock")) {
        es_alarm("%s is too long a path for a socket: %d bytes are the most", es_setting_folder(),
                 SOCKET_PATH_BYTES);
        return false;
    }
    if (!es_channel_open(&greeted, path))
        return false;
    if (es_greet_begin(&greeted, ES_ACCELERATOR_GPU))
        return true;
    es_channel_close(&greeted);
    return false;
}

/* One try to join, by one thread at a time. False when there is no manager now, or none that answers so soon: then the
 * next try goes on with this one. */
static bool try_to_join(int patience_ms)
{
    if (!greet() || !es_channel_readable(&greeted, patience_ms))
        return false;
    if (!es_greet_end(&greeted, "GPU", accept_welcome)) {
        es_channel_close(&greeted);
        return false;
    }
    es_log("joined %s", es_setting_folder());
    es_account_declare();
    return true;
}

static void begin(void)
{
    if (!es_allocation_exists()) {
        es_log("there is no %s: this process has no allocation, the hook stays out of its way", es_setting_folder());
        __atomic_store_n(&es_gate.mode, ES_OUT, __ATOMIC_RELEASE);
        return;
    }
    es_allocation_config(&es_gate.config);
    if (try_to_join(ES_ANSWER_MS))
        return;
    es_absence_begin(&absence, es_now_ns(), grace_ns());
    __atomic_store_n(&es_gate.mode, ES_AWAY, __ATOMIC_RELEASE);
    es_log("there is no manager at %s yet; launches wait at most %u ms for it", es_setting_folder(), es_gate.config.grace_ms);
}

void es_session_join(void)
{
    const int error = errno;

    if (es_life_begin()) {
        begin();
        es_life_begun();
    }
    errno = error;
}

bool es_session_join_anew(void)
{
    const int error = errno;
    const bool anew = es_life_forget();

    if (anew) {
        /* The parent's socket: closing this copy of it tells nobody anything. Its locks may have been held. */
        es_channel_close(&channel);
        es_channel_close(&greeted);
        absence = (struct es_absence){0};
        memset(&es_gate, 0, sizeof(es_gate));
        __atomic_store_n(&es_gate_word, &es_word_shut, __ATOMIC_RELEASE);
        asking = (struct es_lock){0};
        trying = false;
        es_slots_reset();
        es_collect_reset();
        es_stop_reset();
        es_contexts_reset();
        es_streams_reset();
        es_account_reset();
        es_pools_reset();
        es_graph_memory_reset();
        es_virtual_reset();
        es_helper_reset();
        es_life_forgotten();
    }
    errno = error;
    es_session_join();
    return anew;
}

uint32_t es_session_number(void)
{
    uint32_t number;

    do
        number = __atomic_add_fetch(&last_number, 1, __ATOMIC_RELAXED);
    while (number == 0);
    return number;
}

/* Reads what is there. True when it is the answer that is waited for; gives the session up on garbage. */
static bool read_answer(void *answer, uint16_t kind, uint32_t number, bool *more)
{
    union {
        uint8_t bytes[ES_RECORD_BYTES_MAX];
        struct es_header header;
    } packet;
    const ssize_t bytes = es_channel_receive(&channel, &packet, sizeof(packet), NULL);
    int got;

    *more = bytes > 0;
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    got = bytes > 0 ? es_check_from_manager(&packet, (size_t)bytes) : ES_MALFORMED_SHORT;
    if (bytes <= 0 || got < 0) {
        es_session_end(bytes <= 0 ? "it closed the connection" : es_malformed_text(got));
        *more = false;
        return false;
    }
    /* Else it answers a question that nobody waits for any more. */
    if (answer == NULL || got != kind || packet.header.number != number)
        return false;
    memcpy(answer, &packet, (size_t)bytes);
    return true;
}

static bool lasts(uint32_t session)
{
    return es_mode_now() == ES_JOINED && __atomic_load_n(&es_gate.session, __ATOMIC_ACQUIRE) == session;
}

uint32_t es_session_ask(void *record, void *answer, uint16_t kind)
{
    const uint64_t give_up_ns = es_now_ns() + ES_ANSWER_MS * ES_MS;
    const uint32_t number = ((struct es_header *)record)->number;
    const int error = errno;
    bool answered = false, sent, more;
    uint32_t session;

    es_lock_take(&asking);
    es_lock_take(&es_gate.lock);
    session = es_gate.session;
    sent = es_mode_now() == ES_JOINED && es_session_send(record);
    es_lock_give(&es_gate.lock);
    while (sent && !answered && lasts(session)) {
        const uint64_t now_ns = es_now_ns();

        if (now_ns >= give_up_ns) {
            /* An answer that comes now would be for nobody, while the manager counts what it granted. */
            es_lock_take(&es_gate.lock);
            if (lasts(session))
                lose("it does not answer");
            es_lock_give(&es_gate.lock);
            break;
        }
        if (es_channel_readable(&channel, (int)((give_up_ns - now_ns) / ES_MS) + 1))
            answered = read_answer(answer, kind, number, &more);
    }
    es_lock_give(&asking);
    errno = error;
    return answered ? session : 0;
}

void es_session_look(void)
{
    bool more = true;

    if (es_mode_now() != ES_JOINED)
        return;
    if (__atomic_load_n(&es_gate.page->epoch, __ATOMIC_RELAXED) !=
        __atomic_load_n(&es_gate.epoch, __ATOMIC_RELAXED)) {
        es_session_end("it discarded this client's page");
        return;
    }
    /* Who asks reads what there is, and may wait long for an answer: what gives the device back comes by here. */
    if (!es_lock_try(&asking))
        return;
    es_lock_take(&es_gate.lock);
    if (!es_channel_there(&channel))
        lose("its socket was closed by the program");
    es_lock_give(&es_gate.lock);
    while (more && es_mode_now() == ES_JOINED)
        (void)read_answer(NULL, 0, 0, &more);
    es_lock_give(&asking);
}

uint64_t es_session_away(void)
{
    bool joined = false;

    es_locks_hold();
    if (es_now_ns() >= __atomic_load_n(&absence.next_try_ns, __ATOMIC_RELAXED) &&
        !__atomic_exchange_n(&trying, true, __ATOMIC_ACQUIRE)) {
        /* Another thread may have joined since this one saw that there is no session. */
        joined = es_mode_now() == ES_JOINED || try_to_join(GREETING_MS);
        if (!joined)
            __atomic_store_n(&absence.next_try_ns,
                             es_now_ns() + (es_mode_now() == ES_UNSHARED ? UNSHARED_TRY_NS : ES_TRY_NS),
                             __ATOMIC_RELAXED);
        __atomic_store_n(&trying, false, __ATOMIC_RELEASE);
    }
    es_locks_drop();
    es_lock_take(&es_gate.lock);
    if (!joined && es_mode_now() == ES_AWAY && es_absence_over(&absence, es_now_ns(), grace_ns()) &&
        es_gate.config.failure_policy == ES_FAIL_OPEN) {
        __atomic_store_n(&es_gate_word, &es_word_open, __ATOMIC_RELEASE);
        __atomic_store_n(&es_gate.mode, ES_UNSHARED, __ATOMIC_RELEASE);
        es_log("no manager for %u ms: running on unshared until it is back", es_gate.config.grace_ms);
    }
    es_lock_give(&es_gate.lock);
    if (es_mode_now() != ES_AWAY) {
        __atomic_fetch_add(&es_gate.progress, 1, __ATOMIC_RELEASE);
        es_wake_all(&es_gate.progress);
        return 0;
    }
    return ES_TRY_NS;
}
