#include <errno.h>
#include <string.h>

#include "base/kernel.h"
#include "base/log.h"
#include "base/settings.h"
#include "core/shared/config.h"
#include "core/shared/gate_page.h"
#include "core/tools/absence.h"
#include "core/tools/clock.h"
#include "core/tools/lock.h"
#include "link/channel.h"
#include "link/greeting.h"
#include "tpu/tpu.h"
#include "tpu/tpu_folder.h"

/* The connection to the manager, for an EdgeTPU. Simpler than the GPU's: the manager grants the device to one client that
 * asks, never to one that does not, so nothing has to be given back by a thread of the hook's own. */

enum {
    TRY_NS = 100 * 1000 * 1000,        /* how often a manager that is away is looked for */
    BETWEEN_NS = 10 * 1000 * 1000,     /* twice as long as who finds a device busy lets pass before it asks again */
    ASK_AGAIN_NS = 1000 * 1000 * 1000, /* cheap, and no lost record can hang a program */
    SOCKET_PATH_BYTES = 108,           /* unix(7), with the zero at its end */
    PAGE_DISTANCE = 64 * 1024,         /* the largest page that a kernel of these machines has */
};
#define GRANTS ((UINT32_C(1) << (32 - ES_GATE_NUMBER_SHIFT)) - 1) /* numbers begin again at 1 after this */

static struct {
    struct es_lock lock;
    struct es_channel channel;
    struct es_gate_page *page; /* mapped once and replaced in place, so that it can be read without the lock */
    struct es_config config;
    uint32_t epoch;
    bool joined;
    bool requested;
    bool unshared;     /* the manager stayed away, and the policy is open */
    bool outlives;     /* a descriptor of the device outlives exec */
    uint32_t number;   /* of the grant that is held; 0: none */
    uint32_t released; /* of the one that was given back last */
    uint64_t requested_ns, granted_ns;
    uint32_t keepers;
} tpu = {.channel = {.fd = -1}};

ES_LOCKED(tpu.lock) static void lose(const char *why) {
    es_channel_close(&tpu.channel);
    if (tpu.joined)
        es_log("the manager of the EdgeTPU went away (%s)", why);
    tpu.joined = tpu.requested = false;
    tpu.number = 0;
}

/* Takes the WELCOME's page and terms. What the hint page would tell, nobody needs to know of an EdgeTPU. */
static bool accept_welcome(const struct es_welcome *welcome, const int fds[ES_FDS]) {
    if (!es_channel_file_holds(fds[0], ES_PAGE_BYTES))
        return false;
    if (tpu.page == NULL) {
        void *fresh = mmap(NULL, PAGE_DISTANCE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (fresh == MAP_FAILED)
            return false;
        tpu.page = fresh;
    }
    if (es_kernel_replace(tpu.page, ES_PAGE_BYTES, PROT_READ, fds[0]) != 0)
        return false;
    tpu.config = (struct es_config){.failure_policy = welcome->failure_policy, .grace_ms = welcome->grace_ms};
    tpu.epoch = welcome->epoch;
    tpu.released = 0;
    return true;
}

/* Says HELLO, unless that was said and is still to be answered, and hears what comes of it. */
ES_LOCKED(tpu.lock) static enum es_greeted greet(const char *path) {
    if (!es_channel_there(&tpu.channel) &&
        !(es_channel_open(&tpu.channel, path) && es_greet_begin(&tpu.channel, ES_ACCELERATOR_EDGETPU)))
        return ES_GREETED_NOT;
    if (es_channel_readable(&tpu.channel, ES_ANSWER_MS))
        return es_greet_end(&tpu.channel, "EdgeTPU", accept_welcome);
    es_log("the manager does not answer");
    return ES_GREETED_NOT;
}

ES_LOCKED(tpu.lock) static enum es_greeted join(void) {
    static char text[ES_CONFIG_BYTES_MAX];
    char path[SOCKET_PATH_BYTES];
    enum es_greeted came;
    ssize_t bytes;

    if (tpu.joined)
        return ES_GREETED_JOINED;
    if (!es_tpu_folder_socket(path, sizeof(path))) {
        es_alarm("%s is too long a path for a socket: %d bytes are the most", es_setting_tpu_folder(), SOCKET_PATH_BYTES);
        return ES_GREETED_NOT;
    }
    came = greet(path);
    if (came != ES_GREETED_NOT)
        tpu.unshared = false;
    if (came == ES_GREETED_JOINED) {
        tpu.joined = true;
        es_log("joined %s", path);
        if (tpu.outlives)
            (void)es_kernel_control(tpu.channel.fd, F_SETFD, 0);
    } else if (came != ES_GREETED_WAITS) {
        es_channel_close(&tpu.channel);
        bytes = es_tpu_folder_read(text, sizeof(text));
        (void)es_config_parse(text, bytes > 0 ? (size_t)bytes : 0, &tpu.config);
    }
    return came;
}

/* Whether this process has a slice, or has asked for one. */
ES_LOCKED(tpu.lock) static bool granted(uint32_t word, uint64_t now_ns) {
    struct es_request record = {{ES_REQUEST, sizeof(record), 0}};

    const uint32_t number = es_gate_number(word);

    /* One that was called back before this process woke is its own all the same: nobody else has the device until it is
     * given back, and on a busy machine the next slice would be over as soon. */
    if (number != 0 && number != tpu.released) {
        tpu.number = number;
        tpu.granted_ns = now_ns;
        tpu.requested = false;
        return true;
    }
    if (!tpu.requested || now_ns - tpu.requested_ns > ASK_AGAIN_NS) {
        tpu.requested_ns = now_ns;
        tpu.requested = es_channel_send(&tpu.channel, &record, sizeof(record)) == 0;
        if (!tpu.requested)
            lose("nothing can be sent to it");
    }
    return false;
}

/* Has it discarded the page, or closed the connection? */
ES_LOCKED(tpu.lock) static void look(void) {
    uint8_t packet[ES_RECORD_BYTES_MAX];

    if (!tpu.joined)
        return;
    if (__atomic_load_n(&tpu.page->epoch, __ATOMIC_RELAXED) != tpu.epoch)
        lose("it discarded this client's page");
    else if (!es_channel_there(&tpu.channel))
        lose("its socket was closed by the program");
    else if (es_channel_receive(&tpu.channel, packet, sizeof(packet), NULL) == 0)
        lose("it closed the connection");
}

/* Which is given while it waits. */
ES_LOCKED(tpu.lock) static void wait_for_grant(void) {
    struct es_absence absence = {0};

    while (tpu.number == 0) {
        const uint64_t now_ns = es_now_ns();
        enum es_greeted came;
        uint32_t word;

        look();
        came = join();
        if (came != ES_GREETED_JOINED) {
            const uint64_t grace_ns = tpu.config.grace_ms * ES_MS;
            uint64_t pause_ns = TRY_NS;
            static const uint32_t nobody;

            if (came == ES_GREETED_WAITS)
                es_absence_put_off(&absence, now_ns);
            else if (came == ES_GREETED_REFUSED)
                pause_ns = es_absence_refused(&absence, now_ns);
            else if (absence.since_ns == 0)
                es_absence_begin(&absence, now_ns, grace_ns);
            if (came == ES_GREETED_NOT && tpu.config.failure_policy == ES_FAIL_OPEN &&
                (tpu.unshared || es_absence_over(&absence, now_ns, grace_ns))) {
                if (!tpu.unshared) {
                    es_log("no manager for %u ms: the EdgeTPU is opened unshared until it is back", tpu.config.grace_ms);
                } else {
                    /* Others may be back at the manager before this process is: who has a slice gets in between. */
                    es_lock_give(&tpu.lock);
                    es_sleep_on(&nobody, 0, BETWEEN_NS);
                    es_lock_take(&tpu.lock);
                }
                tpu.unshared = true;
                return;
            }
            es_lock_give(&tpu.lock);
            es_sleep_on(&nobody, 0, pause_ns);
            es_lock_take(&tpu.lock);
            continue;
        }
        absence = (struct es_absence){0};
        word = es_gate_load(tpu.page);
        if (granted(word, now_ns) || !tpu.joined)
            continue;
        es_lock_give(&tpu.lock);
        (void)es_gate_wait(tpu.page, word, TRY_NS);
        es_lock_take(&tpu.lock);
    }
}

bool es_tpu_enter(void) {
    const int error = errno;
    bool others = false;

    es_lock_take(&tpu.lock);
    es_tpu_life_begin();
    tpu.keepers++;
    if (tpu.number == 0) {
        const uint32_t before = tpu.released;

        wait_for_grant();
        others = before == 0 || tpu.number != before % GRANTS + 1;
    }
    es_lock_give(&tpu.lock);
    errno = error;
    return others;
}

void es_tpu_keep(void) {
    es_lock_take(&tpu.lock);
    tpu.keepers++;
    es_lock_give(&tpu.lock);
}

void es_tpu_leave(void) {
    const int error = errno;

    es_lock_take(&tpu.lock);
    tpu.keepers--;
    if (tpu.keepers == 0 && tpu.number != 0) {
        /* While it is held nobody else has it: all that time is the device's. */
        struct es_release record = {{ES_RELEASE, sizeof(record), tpu.number}, es_now_ns() - tpu.granted_ns, 0, 0};

        tpu.released = tpu.number;
        tpu.number = 0;
        if (es_channel_send(&tpu.channel, &record, sizeof(record)) != 0)
            lose("nothing can be sent to it");
    }
    es_lock_give(&tpu.lock);
    errno = error;
}

uint64_t es_tpu_patience_ns(void) {
    uint64_t patience_ns;

    es_lock_take(&tpu.lock);
    patience_ns = tpu.config.grace_ms * ES_MS;
    es_lock_give(&tpu.lock);
    return patience_ns;
}

bool es_tpu_unshared(void) {
    bool unshared;

    es_lock_take(&tpu.lock);
    unshared = tpu.unshared && tpu.number == 0;
    es_lock_give(&tpu.lock);
    return unshared;
}

void es_tpu_outlive_exec(bool outlives) {
    const int error = errno;

    es_lock_take(&tpu.lock);
    if (tpu.outlives != outlives && tpu.joined && es_channel_there(&tpu.channel))
        (void)es_kernel_control(tpu.channel.fd, F_SETFD, outlives ? 0 : FD_CLOEXEC);
    tpu.outlives = outlives;
    es_lock_give(&tpu.lock);
    errno = error;
}

ES_UNCHECKED void es_tpu_session_reset(void) {
    /* The parent's socket: closing this copy of it tells nobody anything. Its lock may have been held. */
    es_channel_close(&tpu.channel);
    tpu.lock = (struct es_lock){0};
    tpu.joined = tpu.requested = tpu.unshared = tpu.outlives = false;
    tpu.number = tpu.released = tpu.keepers = 0;
}
