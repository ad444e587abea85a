#ifndef EDGESHARE_TESTS_CORE_H
#define EDGESHARE_TESTS_CORE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/times/costs.h"

/* Tests of the hook's pure parts (cuda_hook/core), to be run under sanitizers: a file for each of what they are about.
 * What failed is printed, and counted. */

extern int failures;

#define CHECK(what)                                                   \
    do {                                                              \
        if (!(what)) {                                                \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
            failures++;                                               \
        }                                                             \
    } while (0)

/* Of a function that has asked in vain to be timed exactly. */
static inline void learn(struct es_costs *table, uint64_t key, uint64_t ns) {
    es_costs_learn(table, key, ns);
    __atomic_store_n(&es_costs_find(table, key)->asks, 0, __ATOMIC_RELEASE);
}

static inline int64_t known_ns(struct es_costs *table, uint64_t key) {
    return es_costs_known_ns(table, es_costs_look(table, key), key, false);
}

void test_records(void);
void test_costs(void);
void test_costs_asked(void);
void test_passes(void);
void test_overlap(void);
void test_timeline(void);
void test_spent(void);
void test_spent_together(void);
void test_shared(void);

#endif
