#ifndef EDGESHARE_TESTS_CHECK_H
#define EDGESHARE_TESTS_CHECK_H

#include <stdio.h>

/* What is not so is printed, and counted. */

static int failures;

#define CHECK(what)                                           \
    do {                                                      \
        if (!(what)) {                                        \
            printf("line %d: not so: %s\n", __LINE__, #what); \
            failures++;                                       \
        }                                                     \
    } while (0)

#endif
