#ifndef EDGESHARE_GREETING_H
#define EDGESHARE_GREETING_H

#include <stdbool.h>
#include <stdint.h>

#include "core/shared/record.h"
#include "link/channel.h"

enum { ES_ANSWER_MS = 1000 }; /* the manager answers within microseconds; after this it is taken for hung */

/* What came of a HELLO. */
enum es_greeted {
    ES_GREETED_NOT,     /* there is no manager, or none that answers, or none whose answer can be used */
    ES_GREETED_REFUSED, /* there is one, and it does not take the process in: it may be asked again, over another connection */
    ES_GREETED_WAITS,   /* the manager knows it and says that it has to wait: the answer is still to come */
    ES_GREETED_JOINED,  /* the manager welcomed it */
};

/* Says HELLO over a fresh connection. False when it cannot be sent; one that the manager has ended before may have an answer
 * in it all the same. */
bool es_greet_begin(const struct es_channel *channel, uint32_t accelerator);

/* What can be received after it, for an accelerator that people call `word`. It has joined where `accept` could use what the
 * WELCOME brings, whose descriptors are closed afterwards; where it has not, and need not wait, the connection is of no use
 * any more. */
enum es_greeted es_greet_end(const struct es_channel *channel, const char *word,
                             bool (*accept)(const struct es_welcome *welcome, const int fds[ES_FDS]));

#endif
