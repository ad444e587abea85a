#ifndef EDGESHARE_CHANNEL_H
#define EDGESHARE_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

enum { ES_FDS = 3 }; /* most descriptors that one record carries: WELCOME's pages */

/* A socket to the manager, one an allocation. Its descriptor may be closed by the program, and its number given to
 * another file, so it is looked at before each use. */
struct es_channel {
    int fd; /* -1: none */
    struct stat identity;
};

/* Connects; false when it cannot, with errno. */
bool es_channel_open(struct es_channel *channel, const char *path);

/* Does that errno say that nobody listens, or not yet? Any other one is of this process: it has no descriptor left, or
 * may not (a filter of system calls, a user who may not enter the folder). */
bool es_channel_nobody_listens(int error);

/* Is the descriptor still the socket that was opened? */
bool es_channel_there(const struct es_channel *channel);

/* Closes it, unless the program did. Closing a forked child's copy tells the manager nothing. */
void es_channel_close(struct es_channel *channel);

/* Ends the connection and closes it: the manager hears of that also where a forked child has the socket, too. */
void es_channel_end(struct es_channel *channel);

/* Sends a record as one packet, without waiting: 0, or an errno: EAGAIN when it cannot be taken just now, EBADF when the
 * program has closed the socket. */
int es_channel_send(const struct es_channel *channel, const void *record, size_t bytes);

/* Receives one packet without waiting, and with it at most ES_FDS descriptors (fds NULL: none are wanted). Its size, more than
 * `size` when it was longer; 0 at the end of the connection; negative for none, with errno. */
ssize_t es_channel_receive(const struct es_channel *channel, void *packet, size_t size, int fds[ES_FDS]);

/* Waits until there is something to receive. */
bool es_channel_readable(const struct es_channel *channel, int timeout_ms);

/* A file's size is at least this, and can never be less (as far as the kernel has seals). */
bool es_channel_file_holds(int fd, size_t bytes);

#endif
