#ifndef SIMGPU_TEST_PROPERTY_H
#define SIMGPU_TEST_PROPERTY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the tests in C have in common: a check that ends the test, and a table of properties of which a call names one. */

#define REQUIRE(condition)                                                  \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                        \
        }                                                                   \
    } while (0)

struct property {
    const char *name;
    void (*run)(void);
};

#define TEST(name) {#name, name}

/* How many times as many seeds a property is tried with as usual: argv[2], where it is given. */
extern uint64_t times;

/* The one of that name; NULL: there is none. */
const struct property *property_named(const struct property *properties, size_t count, const char *name);

/* What main returns of a program that does no more than run one. */
int run_property(const struct property *properties, size_t count, int argc, char **argv);

#endif
