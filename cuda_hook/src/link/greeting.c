#include "link/greeting.h"

#include <errno.h>

#include "base/kernel.h"
#include "base/log.h"

static bool told; /* atomic: that this process has to wait, or is refused */

bool es_greet_begin(const struct es_channel *channel, uint32_t accelerator) {
    struct es_hello hello = {{ES_HELLO, sizeof(hello), 0}, ES_VERSION_MIN, ES_VERSION, accelerator, 0};

    const int error = es_channel_send(channel, &hello, sizeof(hello));

    return error == 0 || error == EPIPE || error == ECONNRESET;
}

enum es_greeted es_greet_end(const struct es_channel *channel, const char *word,
                             bool (*accept)(const struct es_welcome *welcome, const int fds[ES_FDS])) {
    union {
        uint8_t bytes[ES_RECORD_BYTES_MAX];
        struct es_welcome welcome;
        struct es_refused refused;
    } answer;
    int fds[ES_FDS] = {-1, -1, -1};
    enum es_greeted greeted = ES_GREETED_NOT;
    ssize_t bytes;
    int kind;

    bytes = es_channel_receive(channel, &answer, sizeof(answer), fds);
    /* Who refuses does not read HELLO: the kernel says that first, and then what was refused with. */
    if (bytes < 0 && errno == ECONNRESET)
        bytes = es_channel_receive(channel, &answer, sizeof(answer), fds);
    if (bytes <= 0) {
        es_log("the manager closed the connection instead of answering HELLO");
        return greeted;
    }
    kind = es_check_from_manager(&answer, (size_t)bytes);
    if (kind == ES_WELCOME) {
        if (answer.welcome.version >= ES_VERSION_MIN && answer.welcome.version <= ES_VERSION && accept(&answer.welcome, fds))
            greeted = ES_GREETED_JOINED;
        else
            es_alarm("the manager's WELCOME cannot be used: its version or its pages are wrong");
    } else if (kind == ES_WAIT) {
        greeted = ES_GREETED_WAITS;
        if (!__atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
            es_alarm("the manager lets this process wait for its %s: it knows it, and cannot pass it its pages just now; its log "
                     "says why",
                     word);
    } else if (kind == ES_REFUSED) {
        greeted = ES_GREETED_REFUSED;
        if (!__atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
            es_alarm("the manager refuses this process its %s (reason %u), and it waits: %.*s", word, answer.refused.reason,
                     ES_TEXT_BYTES, answer.refused.text);
    } else {
        es_alarm("the manager sent no answer to HELLO that can be read: %s", es_malformed_text(kind));
    }
    for (int i = 0; i < ES_FDS; i++) {
        if (fds[i] >= 0)
            (void)es_kernel_close(fds[i]);
    }
    return greeted;
}
