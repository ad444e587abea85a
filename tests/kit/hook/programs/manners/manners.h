#ifndef EDGESHARE_MANNERS_H
#define EDGESHARE_MANNERS_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#include "driver_api.h"

/* Programs that end, fork, are interrupted and are confined in ways that a guest must bear (things.def), a file for each of
 * what they are about. Without the hook each does the same. */

#define MUST(condition)                                                      \
    do {                                                                     \
        if (!(condition)) {                                                  \
            printf("%s:%d: %s is not so\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                         \
        }                                                                    \
    } while (0)
#define GOOD(call) MUST((call) == CUDA_SUCCESS)

/* What `start` sets: the first device's primary context, and its function that runs for the time it is given. */
extern CUcontext context;
extern CUfunction function;

void start(void);
CUresult launch(unsigned long long us);

/* A little of everything that the hook has to do with. */
void work(void);

/* Has a thread do it, and waits for its end; stack_bytes 0: as large as usual. */
void in_thread(void *(*what)(void *), size_t stack_bytes);

/* Says what it waits for, and does until a line comes. */
void wait_for_word(const char *what);

/* Waits for a child's end; its status. */
int ended(pid_t child);

#define THING(name) void name(void);
#include "things.def"
#undef THING

#endif
