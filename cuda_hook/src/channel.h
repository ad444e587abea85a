#ifndef EDGESHARE_CHANNEL_H
#define EDGESHARE_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The socket to the manager. Its descriptor may be closed by the program, and its number given to another file, so it is
 * looked at before each use. */

/* Connects; false when nobody listens. */
bool es_channel_open(const char *path);

/* Is the descriptor still the socket that was opened? */
bool es_channel_there(void);

/* Closes it, unless the program did. Closing a forked child's copy tells the manager nothing. */
void es_channel_close(void);

/* Sends a record as one packet, without waiting: 0, or an errno: EAGAIN when it cannot be taken just now, EBADF when the
 * program has closed the socket. */
int es_channel_send(const void *record, size_t bytes);

/* Receives one packet without waiting, and with it at most two descriptors (fds NULL: none are wanted). Its size, more than
 * `size` when it was longer; 0 at the end of the connection; negative for none, with errno. */
ssize_t es_channel_receive(void *packet, size_t size, int fds[2]);

/* Waits until there is something to receive. */
bool es_channel_readable(int timeout_ms);

/* A file's size is at least this, and can never be less (as far as the kernel has seals). */
bool es_channel_file_holds(int fd, size_t bytes);

#endif
