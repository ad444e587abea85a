#include "session.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "account.h"
#include "allocation.h"
#include "channel.h"
#include "closed.h"
#include "contexts.h"
#include "gate.h"
#include "graph_memory.h"
#include "greeting.h"
#include "helper.h"
#include "kernel.h"
#include "life.h"
#include "log.h"
#include "pools.h"
#include "slots.h"
#include "streams.h"
#include "virtual.h"

enum {
    AWAY_TRY_NS = 100 * 1000 * 1000,
    UNSHARED_TRY_NS = 1000 * 1000 * 1000,
    PAGE_DISTANCE = 64 * 1024, /* the largest page that a kernel of these machines has: mappings begin at multiples of it */
    SOCKET_PATH_BYTES = 108, /* unix(7), with the zero at its end */
};

static struct es_channel channel = {.fd = -1};
static struct es_lock asking;  /* one question at a time; held while waiting for the answer */
static uint32_t last_number;
static bool trying;            /* atomic: one thread at a time tries to join again */
static uint64_t next_try_ns;
static uint8_t *pages;         /* two, where the gate's and the hint's are mapped */

/* With the gate's lock held. */
static void lose(const char *why)
{
    if (es_mode_now() != ES_JOINED)
        return;
    es_channel_close(&channel);
    __atomic_store_n(&es_gate_word, &es_word_shut, __ATOMIC_RELEASE);
    __atomic_store_n(&es_gate.mode, ES_AWAY, __ATOMIC_RELEASE);
    es_gate.away_since_ns = es_now_ns();
    next_try_ns = 0;
    es_log("the manager went away (%s); launches wait at most %u ms for it", why, es_gate.config.grace_ms);
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

/* A page's file must be a whole page and stay one, or reading it could end the process. */
static bool map_page(int fd, size_t index, int protection)
{
    if (!es_channel_file_holds(fd, ES_PAGE_BYTES))
        return false;
    return es_kernel_replace(pages + index * PAGE_DISTANCE, ES_PAGE_BYTES, protection, fd) == 0;
}

/* Takes the WELCOME's pages and terms; the mode changes to ES_JOINED. */
static bool accept_welcome(const struct es_welcome *welcome, const int fds[2])
{
    if (pages == NULL) {
        uint8_t *fresh =
            mmap(NULL, 2 * PAGE_DISTANCE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (fresh == MAP_FAILED)
            return false;
        pages = fresh;
    }
    if (!map_page(fds[0], 0, PROT_READ) || !map_page(fds[1], 1, PROT_READ | PROT_WRITE))
        return false;
    es_lock_take(&es_gate.lock);
    /* Read without the lock, so written once. */
    if (es_gate.page == NULL) {
        es_gate.hint = (struct es_hint_page *)(pages + PAGE_DISTANCE);
        es_gate.page = (struct es_gate_page *)pages;
    }
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
    __atomic_store_n(&es_gate.mode, ES_JOINED, __ATOMIC_RELEASE);
    es_lock_give(&es_gate.lock);
    return true;
}

/* One try to connect. False when there is no manager now. */
static bool try_to_join(void)
{
    char path[SOCKET_PATH_BYTES];

    if (!es_allocation_path(path, sizeof(path), "hook.sock")) {
        es_alarm("%s is too long a path for a socket: %d bytes are the most", es_allocation_folder(),
                 SOCKET_PATH_BYTES);
        return false;
    }
    if (!es_channel_open(&channel, path))
        return false;
    if (!es_greet(&channel, ES_ACCELERATOR_GPU, "GPU", accept_welcome)) {
        es_channel_close(&channel);
        return false;
    }
    es_log("joined %s", path);
    es_account_declare();
    return true;
}

static void begin(void)
{
    if (!es_allocation_exists()) {
        es_log("there is no %s: this process has no allocation, the hook stays out of its way", es_allocation_folder());
        __atomic_store_n(&es_gate.mode, ES_OUT, __ATOMIC_RELEASE);
        return;
    }
    es_allocation_config(&es_gate.config);
    if (try_to_join())
        return;
    es_gate.away_since_ns = es_now_ns();
    __atomic_store_n(&es_gate.mode, ES_AWAY, __ATOMIC_RELEASE);
    es_log("there is no manager at %s yet; launches wait at most %u ms for it", es_allocation_folder(), es_gate.config.grace_ms);
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
        memset(&es_gate, 0, sizeof(es_gate));
        __atomic_store_n(&es_gate_word, &es_word_shut, __ATOMIC_RELEASE);
        asking = (struct es_lock){0};
        trying = false;
        next_try_ns = 0;
        es_slots_reset();
        es_closed_reset();
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
        es_lock_take(&es_gate.lock);
        lose(bytes <= 0 ? "it closed the connection" : es_malformed_text(got));
        es_lock_give(&es_gate.lock);
        *more = false;
        return false;
    }
    /* Else it answers a question that nobody waits for any more. */
    if (answer == NULL || got != kind || packet.header.number != number)
        return false;
    memcpy(answer, &packet, (size_t)bytes);
    return true;
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
    while (sent && !answered && es_mode_now() == ES_JOINED) {
        const uint64_t now_ns = es_now_ns();

        if (now_ns >= give_up_ns)
            break;
        if (es_channel_readable(&channel, (int)((give_up_ns - now_ns) / ES_MS) + 1))
            answered = read_answer(answer, kind, number, &more);
    }
    es_lock_give(&asking);
    if (sent && !answered)
        es_log("the manager did not answer within %d ms", ES_ANSWER_MS);
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
        es_lock_take(&es_gate.lock);
        lose("it discarded this client's page");
        es_lock_give(&es_gate.lock);
        return;
    }
    es_lock_take(&asking);
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
    const uint64_t now_ns = es_now_ns();
    const uint64_t grace_end_ns = es_gate.away_since_ns + es_gate.config.grace_ms * ES_MS;
    bool joined = false;

    es_locks_hold();
    if (now_ns >= __atomic_load_n(&next_try_ns, __ATOMIC_RELAXED) &&
        !__atomic_exchange_n(&trying, true, __ATOMIC_ACQUIRE)) {
        joined = try_to_join();
        __atomic_store_n(&next_try_ns, now_ns + (es_mode_now() == ES_UNSHARED ? UNSHARED_TRY_NS : AWAY_TRY_NS),
                         __ATOMIC_RELAXED);
        __atomic_store_n(&trying, false, __ATOMIC_RELEASE);
    }
    es_locks_drop();
    es_lock_take(&es_gate.lock);
    if (!joined && es_mode_now() == ES_AWAY && now_ns >= grace_end_ns &&
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
    return AWAY_TRY_NS;
}
