#ifndef EDGESHARE_GREETING_H
#define EDGESHARE_GREETING_H

#include <stdbool.h>
#include <stdint.h>

#include "core/shared/record.h"
#include "link/channel.h"

enum { ES_ANSWER_MS = 1000 }; /* the manager answers within microseconds; after this it is taken for hung */

/* Says HELLO over a fresh connection. False when the manager takes none. */
bool es_greet_begin(const struct es_channel *channel, uint32_t accelerator);

/* The answer to it, when it can be received: as es_greet. */
bool es_greet_end(const struct es_channel *channel, const char *word,
                  bool (*accept)(const struct es_welcome *welcome, const int fds[ES_FDS]));

/* HELLO and its answer over a fresh connection, for an accelerator that people call `word`. Whether the process has joined:
 * the manager welcomed it and `accept` could use what the WELCOME brings, whose descriptors are closed afterwards. */
bool es_greet(const struct es_channel *channel, uint32_t accelerator, const char *word,
              bool (*accept)(const struct es_welcome *welcome, const int fds[ES_FDS]));

#endif
