/* What a thread looks up for its launches. */
#include "core.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/times/costs.h"
#include "core/times/passes.h"

/* The cost of a pass; 0 when there is none. */
static int64_t passing_ns(struct es_passes *passes, uint64_t key, const void *stream) {
    const struct es_pass *pass = es_passes_find(passes, key, stream);

    return es_passes_holds(passes, pass, key, stream) ? pass->cost_ns : 0;
}

static void pass(struct es_passes *passes, uint64_t key, const void *stream, int64_t cost_ns) {
    es_passes_put(passes, es_passes_find(passes, key, stream), key, stream, cost_ns);
    es_passes_note(passes, stream);
}

/* By two threads: one learns ever more functions than the table has places, each with a cost that goes with its key; the
 * other looks without a lock. */
enum { KEYS = 3 * ES_COSTS, LOOKS_MOST = 1000 * 1000 * 1000 };

static struct es_costs shared_costs;
static bool learning = true, looked;

static int64_t cost_of_key(uint64_t key) { return (int64_t)(1000 + key % 4096); }

static void *look_up_costs(void *unused) {
    uint64_t seen = 0;

    (void)unused;
    for (uint64_t i = 0; i < LOOKS_MOST && (seen < 1000 || __atomic_load_n(&learning, __ATOMIC_ACQUIRE)); i++) {
        const uint64_t key = 1 + i % KEYS;
        const int64_t ns = known_ns(&shared_costs, key);

        CHECK(ns == 0 || ns == cost_of_key(key));
        seen += ns != 0;
        if (seen == 1000)
            __atomic_store_n(&looked, true, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void a_cost_that_is_looked_up_without_a_lock_is_of_that_function(void) {
    pthread_t looker;

    pthread_create(&looker, NULL, look_up_costs, NULL);
    for (int round = 0; round < 30 || (round < LOOKS_MOST / KEYS && !__atomic_load_n(&looked, __ATOMIC_ACQUIRE)); round++) {
        for (uint64_t key = 1; key <= KEYS; key++)
            learn(&shared_costs, key, (uint64_t)cost_of_key(key));
    }
    __atomic_store_n(&learning, false, __ATOMIC_RELEASE);
    pthread_join(looker, NULL);
    CHECK(looked);
}

static void an_entry_that_became_another_functions_tells_nothing(void) {
    static struct es_costs table;
    struct es_cost *entry;

    learn(&table, 1, 700);
    entry = es_costs_look(&table, 1);
    CHECK(entry != NULL && es_costs_known_ns(&table, entry, 1, false) == 700);
    for (uint64_t key = 2; key < 64 * ES_COSTS && entry->key == 1; key++)
        learn(&table, key, 900);
    CHECK(entry->key != 1 && entry->samples != 0 && es_costs_known_ns(&table, entry, 1, true) == 0 &&
          es_costs_look(&table, 1) == NULL);
}

static int places[8]; /* what streams are told apart by */

/* Launches a function as the gate does: true when that had to look further than into the thread's table. */
static bool looks_up(struct es_passes *passes, struct es_costs *table, uint64_t key, const void *stream) {
    if (es_passes_holds(passes, es_passes_place(passes, key), key, stream) ||
        es_passes_holds(passes, es_passes_find(passes, key, stream), key, stream))
        return false;
    pass(passes, key, stream, known_ns(table, key));
    return true;
}

static void each_of_many_functions_in_turn_is_looked_up_once(void) {
    static const uint64_t strides[] = {8, 16, 48, 64, 96, 256, 448, 4096, UINT64_C(1) << 56};
    static struct es_costs table;

    for (size_t i = 0; i < sizeof(strides) / sizeof(*strides); i++) {
        static struct es_passes passes;
        int lookups = 0;

        es_passes_forget(&passes);
        for (int round = 0; round < 10; round++) {
            for (uint64_t n = 0; n < 200; n++)
                lookups += looks_up(&passes, &table, UINT64_C(0x100005f3b2a41040) + n * strides[i], &places[n % 2]);
        }
        CHECK(lookups == 200);
    }
}

/* As many threads as read one table of costs, each with passes of its own. */
static void *launch_in_turn(void *unused) {
    struct es_passes *passes = calloc(1, sizeof(*passes));
    uintptr_t lookups = 0;

    (void)unused;
    es_passes_forget(passes);
    for (uint64_t i = 0; i < 2000; i++)
        lookups += looks_up(passes, &shared_costs, UINT64_C(0x500000) + i % 200 * 320, places);
    free(passes);
    return (void *)lookups;
}

static void threads_look_each_function_up_once(void) {
    pthread_t threads[8];

    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, launch_in_turn, NULL);
    for (int i = 0; i < 8; i++) {
        void *lookups;

        pthread_join(threads[i], &lookups);
        CHECK((uintptr_t)lookups == 200);
    }
}

static void a_handle_that_is_used_anew_costs_what_was_learnt_since(void) {
    static struct es_costs table;
    static struct es_passes passes;

    es_passes_forget(&passes);
    learn(&table, 77, 9000);
    CHECK(looks_up(&passes, &table, 77, NULL) && passing_ns(&passes, 77, NULL) == 9000);
    /* Another function has the handle now; its first time is known as a batch ends. */
    learn(&table, 77, 1000);
    es_passes_forget(&passes);
    CHECK(passing_ns(&passes, 77, NULL) == 0 && !es_passes_know(&passes, NULL));
    CHECK(looks_up(&passes, &table, 77, NULL));
    CHECK(passing_ns(&passes, 77, NULL) == 5000 && known_ns(&table, 77) == 5000);
}

static void passes_are_of_one_stream_and_one_batch(void) {
    static struct es_passes passes;
    static const uint64_t many = 4 * ES_PASSES;

    for (int batch = 0; batch < 3; batch++) {
        es_passes_forget(&passes);
        for (int i = 0; i <= ES_PASSES_STREAMS; i++) {
            CHECK(!es_passes_know(&passes, &places[i]) && passing_ns(&passes, 1, &places[i]) == 0);
            pass(&passes, 1, &places[i], i + 1);
            CHECK(es_passes_know(&passes, &places[i]));
            CHECK(i > 0 || passes.streams[0].stream == &places[0]);
        }
        for (int i = 0; i <= ES_PASSES_STREAMS; i++)
            CHECK(passing_ns(&passes, 1, &places[i]) == i + 1);
        CHECK(!es_passes_know(&passes, &places[0]));
    }
    /* More than there are places: the latest is there, and whatever is found is right. */
    for (uint64_t key = 1; key <= many; key++) {
        pass(&passes, key * 16, NULL, (int64_t)key);
        CHECK(passing_ns(&passes, key * 16, NULL) == (int64_t)key);
    }
    for (uint64_t key = 1; key <= many; key++)
        CHECK(passing_ns(&passes, key * 16, NULL) == 0 || passing_ns(&passes, key * 16, NULL) == (int64_t)key);
}

void test_passes(void) {
    an_entry_that_became_another_functions_tells_nothing();
    a_cost_that_is_looked_up_without_a_lock_is_of_that_function();
    each_of_many_functions_in_turn_is_looked_up_once();
    threads_look_each_function_up_once();
    a_handle_that_is_used_anew_costs_what_was_learnt_since();
    passes_are_of_one_stream_and_one_batch();
}
