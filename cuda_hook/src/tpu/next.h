#ifndef EDGESHARE_NEXT_H
#define EDGESHARE_NEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/kernel.h"

/* The C library's functions, or those of whoever stands between it and the hook. */

enum es_next {
#define ES_TPU(name) ES_NEXT_##name,
#include "tpu/tpu_symbols.def"
#undef ES_TPU
    ES_NEXTS,
};

/* The one that stands behind the hook; NULL where the C library has none of this name. */
void *es_next(enum es_next which, const char *name);

/* Calls it, or the kernel where there is none. */
#define ES_NEXT(name, type, arguments, kernel) \
    (es_next(ES_NEXT_##name, #name) != NULL ? ((type)es_next(ES_NEXT_##name, #name))arguments : (int)(kernel))

typedef int (*open_function)(const char *, int, mode_t);
typedef int (*openat_function)(int, const char *, int, mode_t);
typedef int (*open_2_function)(const char *, int);
typedef int (*openat_2_function)(int, const char *, int);
typedef int (*close_function)(int);
typedef int (*close_range_function)(unsigned int, unsigned int, int);
typedef int (*dup_function)(int);
typedef int (*dup2_function)(int, int);
typedef int (*dup3_function)(int, int, int);
typedef int (*fcntl_function)(int, int, long);
typedef int (*ioctl_function)(int, unsigned long, void *);

int es_next_open(const char *path, int flags, mode_t mode);
int es_next_ioctl(int fd, unsigned long request, void *argument);

/* Is that the answer of a driver whose device another process has? Waits a moment then, until *end_ns at most, which is
 * 0 before the first time; by whoever has entered. */
bool es_tpu_busy(int result, uint64_t *end_ns);

#endif
