/* What the tests in C have in common: a check that ends the test, and a table of properties of which a call names one. */
#ifndef SIMGPU_TEST_PROPERTY_H
#define SIMGPU_TEST_PROPERTY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
static uint64_t times = 1;

/* The one of that name; NULL: there is none. */
static inline const struct property *property_named(const struct property *properties, size_t count, const char *name) {
    for (size_t index = 0; index < count; index++) {
        if (strcmp(name, properties[index].name) == 0)
            return &properties[index];
    }
    return NULL;
}

/* What main returns of a program that does no more than run one. */
static inline int run_property(const struct property *properties, size_t count, int argc, char **argv) {
    const struct property *property = argc > 1 ? property_named(properties, count, argv[1]) : NULL;
    if (!property)
        return 2;
    if (argc > 2)
        times = strtoull(argv[2], NULL, 10);
    property->run();
    return 0;
}

#endif
