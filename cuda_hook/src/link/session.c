#include "link/session.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/state.h"
#include "core/tools/clock.h"
#include "link/greeting.h"
#include "link/link.h"

static struct es_channel channel = {.fd = -1};
static struct es_lock asking; /* one question at a time; held while waiting for the answer */
static uint32_t last_number;

/* Ends the session. The manager's books of it end with the connection, and what this process has it declares in the
 * next one; so whatever was not heard or not said in a session ends it. */
ES_LOCKED(es_state_lock) static void lose(const char *why) {
    if (es_mode_now() != ES_JOINED)
        return;
    es_channel_end(&channel);
    __atomic_store_n(&es_link_word, &es_word_shut, __ATOMIC_RELEASE);
    __atomic_store_n(&es_link.mode, ES_AWAY, __ATOMIC_RELEASE);
    es_absence_begin(&es_link.absence, es_now_ns(), es_link_grace_ns());
    es_log("the manager went away (%s); launches wait at most %u ms for it", why, es_link.config.grace_ms);
    if (es_link.absence.cut_short == 1)
        es_alarm("sessions with the manager end again and again (%s): its log may say why; this process now tries less "
                 "often, and goes on as without a manager",
                 why);
}

void es_session_end(const char *why) {
    es_lock_take(&es_state_lock);
    lose(why);
    es_lock_give(&es_state_lock);
}

void es_session_open(struct es_channel welcomed) {
    channel = welcomed;
    __atomic_add_fetch(&es_link.session, 1, __ATOMIC_RELEASE);
}

bool es_session_send(void *record) {
    const int before = errno;
    const int error = es_channel_send(&channel, record, ((const struct es_header *)record)->size);

    /* EAGAIN: it reads too slowly just now, the caller tries again later. */
    if (error != 0 && error != EAGAIN)
        lose(error == EBADF ? "its socket was closed by the program" : "nothing can be sent to it");
    errno = before;
    return error == 0;
}

uint32_t es_session_number(void) {
    uint32_t number;

    do
        number = __atomic_add_fetch(&last_number, 1, __ATOMIC_RELAXED);
    while (number == 0);
    return number;
}

/* Reads what is there. True when it is the answer that is waited for; gives the session up on garbage. */
static bool read_answer(void *answer, uint16_t kind, uint32_t number, bool *more) {
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
    /* An answer to a question that nobody waits for any more is passed over. */
    if (answer == NULL || got != kind || packet.header.number != number)
        return false;
    memcpy(answer, &packet, (size_t)bytes);
    return true;
}

static bool lasts(uint32_t session) {
    return es_mode_now() == ES_JOINED && __atomic_load_n(&es_link.session, __ATOMIC_ACQUIRE) == session;
}

uint32_t es_session_ask(void *record, void *answer, uint16_t kind) {
    const uint64_t give_up_ns = es_now_ns() + ES_ANSWER_MS * ES_MS;
    const uint32_t number = ((struct es_header *)record)->number;
    const int error = errno;
    bool answered = false, sent, more;
    uint32_t session;

    es_lock_take(&asking);
    es_lock_take(&es_state_lock);
    session = es_link.session;
    sent = es_mode_now() == ES_JOINED && es_session_send(record);
    es_lock_give(&es_state_lock);
    while (sent && !answered && lasts(session)) {
        const uint64_t now_ns = es_now_ns();

        if (now_ns >= give_up_ns) {
            /* An answer that comes now would be for nobody, while the manager counts what it granted. */
            es_lock_take(&es_state_lock);
            if (lasts(session))
                lose("it does not answer");
            es_lock_give(&es_state_lock);
            break;
        }
        if (es_channel_readable(&channel, (int)((give_up_ns - now_ns) / ES_MS) + 1))
            answered = read_answer(answer, kind, number, &more);
    }
    es_lock_give(&asking);
    errno = error;
    return answered ? session : 0;
}

void es_session_look(void) {
    bool more = true;

    if (es_mode_now() != ES_JOINED)
        return;
    if (__atomic_load_n(&es_link.page->epoch, __ATOMIC_RELAXED) != __atomic_load_n(&es_link.epoch, __ATOMIC_RELAXED)) {
        es_session_end("it discarded this client's page");
        return;
    }
    /* Who asks reads what there is, and may wait long for an answer: what gives the device back comes by here. */
    if (!es_lock_try(&asking))
        return;
    es_lock_take(&es_state_lock);
    if (!es_channel_there(&channel))
        lose("its socket was closed by the program");
    es_lock_give(&es_state_lock);
    while (more && es_mode_now() == ES_JOINED)
        (void)read_answer(NULL, 0, 0, &more);
    es_lock_give(&asking);
}

ES_UNCHECKED void es_session_reset(void) {
    /* The parent's socket: closing this copy of it tells nobody anything. */
    es_channel_close(&channel);
    asking = (struct es_lock){0};
}
