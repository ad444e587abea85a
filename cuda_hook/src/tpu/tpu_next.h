#ifndef EDGESHARE_TPU_NEXT_H
#define EDGESHARE_TPU_NEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The C library's functions, or those of whoever stands between it and the hook. */
int es_next_open(const char *path, int flags, mode_t mode);
int es_next_ioctl(int fd, unsigned long request, void *argument);

/* Is that the answer of a driver whose device another process has? Waits a moment then, until *end_ns at most, which is
 * 0 before the first time; by whoever has entered. */
bool es_tpu_busy(int result, uint64_t *end_ns);

#endif
