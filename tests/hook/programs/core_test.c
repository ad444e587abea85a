/* Tests of the hook's pure parts (cuda_hook/core), to be run under sanitizers. Prints what failed; exits 1 then. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/shared/allowance.h"
#include "core/shared/config.h"
#include "core/shared/gate_page.h"
#include "core/shared/record.h"
#include "core/shared/used.h"
#include "core/times/bursts.h"
#include "core/times/costs.h"
#include "core/times/gaps.h"
#include "core/times/overlap.h"
#include "core/times/passes.h"
#include "core/times/spent.h"
#include "core/times/timeline.h"
#include "core/tools/blocks.h"
#include "core/tools/lock.h"

static int failures;

#define CHECK(what)                                                   \
    do {                                                              \
        if (!(what)) {                                                \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
            failures++;                                               \
        }                                                             \
    } while (0)

/* A packet in memory of exactly its size, so that a sanitizer sees a read beyond it. */
static int check_exactly(const void *packet, size_t bytes, int (*check)(const void *, size_t)) {
    unsigned char *copy = malloc(bytes != 0 ? bytes : 1);
    int kind;

    memcpy(copy, packet, bytes);
    kind = check(copy, bytes);
    free(copy);
    return kind;
}

static void records_are_checked(void) {
    unsigned char packet[256] = {0};
    uint32_t state = 1;

    for (unsigned int kind = 0; kind < 256; kind++) {
        for (size_t bytes = 0; bytes <= sizeof(packet); bytes++) {
            const struct es_header header = {(uint16_t)kind, (uint16_t)bytes, 1};
            int from_client, from_manager;

            memcpy(packet, &header, sizeof(header));
            from_client = check_exactly(packet, bytes, es_check_from_client);
            from_manager = check_exactly(packet, bytes, es_check_from_manager);
            CHECK(from_client < 0 || from_manager < 0);
            CHECK(from_client < 0 || bytes == es_record_bytes(kind));
            CHECK(from_manager < 0 || bytes == es_record_bytes(kind));
        }
    }
    for (int i = 0; i < 200000; i++) {
        size_t bytes;

        for (size_t at = 0; at < sizeof(packet); at++)
            packet[at] = (unsigned char)((state = state * 1664525 + 1013904223) >> 24);
        packet[0] %= 16;
        packet[1] = 0;
        bytes = es_record_bytes(packet[0]) != 0 ? es_record_bytes(packet[0]) : 7;
        packet[2] = (unsigned char)bytes;
        packet[3] = 0;
        (void)check_exactly(packet, bytes, es_check_from_client);
        (void)check_exactly(packet, bytes, es_check_from_manager);
    }
    for (int malformed = -6; malformed <= 0; malformed++)
        CHECK(es_malformed_text(malformed) != NULL);
}

static void fields_are_checked(void) {
    struct es_reserve reserve = {{ES_RESERVE, sizeof(reserve), 1}, 4096, 0, ES_MEMORY_PLAIN};
    struct es_welcome welcome = {{ES_WELCOME, sizeof(welcome), 0}, 1, ES_FAIL_CLOSED, 5000, 7, 1, 1, 0, 1};
    struct es_refused refused = {.header = {ES_REFUSED, sizeof(refused), 0}, .reason = 1};
    struct es_release release = {{ES_RELEASE, sizeof(release), 1}, 1, 0, 0};

    CHECK(es_check_from_client(&reserve, sizeof(reserve)) == ES_RESERVE);
    CHECK(es_check_from_manager(&reserve, sizeof(reserve)) == ES_MALFORMED_SENDER);
    reserve.bytes = UINT64_MAX;
    CHECK(es_check_from_client(&reserve, sizeof(reserve)) == ES_MALFORMED_FIELD);
    reserve.bytes = 0;
    reserve.kind = 9;
    CHECK(es_check_from_client(&reserve, sizeof(reserve)) == ES_MALFORMED_FIELD);
    CHECK(es_check_from_manager(&welcome, sizeof(welcome)) == ES_WELCOME);
    welcome.epoch = 0;
    CHECK(es_check_from_manager(&welcome, sizeof(welcome)) == ES_MALFORMED_FIELD);
    memset(refused.text, 'x', sizeof(refused.text));
    CHECK(es_check_from_manager(&refused, sizeof(refused)) == ES_MALFORMED_FIELD);
    CHECK(es_check_from_client(&release, sizeof(release)) == ES_RELEASE);
    release.header.number = 0;
    CHECK(es_check_from_client(&release, sizeof(release)) == ES_MALFORMED_FIELD);
}

static void words_carry_what_was_put_in(void) {
    struct es_gate_page page = {.epoch = 3};

    es_gate_open(&page, (1u << 30) - 1, 1, 5, 5, 0, 0, 0);
    CHECK(es_gate_number(es_gate_load(&page)) == (1u << 30) - 1);
    CHECK((es_gate_load(&page) & (ES_GATE_HELD | ES_GATE_CONTENDED)) == (ES_GATE_HELD | ES_GATE_CONTENDED));
    es_gate_open(&page, 9, 0, 6, 10, 7, ES_BESIDE_OTHERS, 20000);
    CHECK(page.beside == ES_BESIDE_OTHERS && page.cap_ns == 20000);
    CHECK(es_gate_load(&page) == es_gate_open_word(9, 0) && page.granted_at_ns == 6 && page.free_at_ns == 10 &&
          page.ends_at_ns == 7);
    es_gate_prolong(&page, 8);
    CHECK(page.ends_at_ns == 8);
    es_gate_close(&page);
    CHECK((es_gate_load(&page) & ES_GATE_HELD) == 0 && es_gate_number(es_gate_load(&page)) == 9);
    CHECK(es_gate_wait(&page, 12345, 1000000000) == 0); /* it is another one already */
    CHECK(es_gate_wait(&page, es_gate_load(&page), 1000) != 0);
    CHECK(es_gate_call(&page) == 0);
    es_gate_discard(&page);
    CHECK(page.epoch == 0);
}

static struct es_costs costs;

/* Of a function that has asked in vain to be timed exactly. */
static void learn(struct es_costs *table, uint64_t key, uint64_t ns) {
    es_costs_learn(table, key, ns);
    __atomic_store_n(&es_costs_find(table, key)->asks, 0, __ATOMIC_RELEASE);
}

static void costs_are_learnt(void) {
    struct es_cost *entry = es_costs_find(&costs, 77);

    CHECK(entry->samples == 0 && es_costs_find(&costs, 77) == entry);
    learn(&costs, 77, 1000);
    CHECK(entry->ns == 1000 && entry->samples == 1);
    for (int i = 0; i < 100; i++)
        learn(&costs, 77, 3000);
    CHECK(entry->ns > 2900 && entry->ns <= 3000);
    for (int i = 0; i < 100; i++)
        learn(&costs, 77, 0);
    CHECK(entry->ns >= ES_COSTS_LEAST_NS && entry->ns < 600);
    /* What others' work hides is timed again after a while, what a burst of its own hides is not. */
    es_costs_miss(&costs, 77, 0);
    CHECK(entry->missed == 0);
    entry->pending_since_ns = 5;
    for (int i = 0; i <= ES_COSTS_STALE; i++)
        es_costs_miss(&costs, 77, 1);
    CHECK(entry->missed > ES_COSTS_STALE && entry->pending_since_ns == 0);
    learn(&costs, 77, 500);
    CHECK(entry->missed == 0);
    /* Of the time of several nothing is learned while its own is a guess, or else, after long, the most that it can be. */
    entry = es_costs_find(&costs, 88);
    for (int i = 0; i < ES_COSTS_GUESSES; i++)
        es_costs_learn_part(&costs, 88, 600, 9000);
    CHECK(entry->samples == 0);
    es_costs_learn_part(&costs, 88, 600, 9000);
    CHECK(entry->samples == 1 && entry->ns == 9000);
    es_costs_learn_part(&costs, 88, 8000, 9000);
    CHECK(entry->samples == 2 && entry->ns == 8500);
    /* More keys than places: the table stays a table, and what is used most stays in it. */
    for (uint64_t key = 1000; key < 1000 + 4 * ES_COSTS; key++)
        CHECK(es_costs_find(&costs, key)->key == key);
    CHECK(es_costs_find(&costs, 77)->samples > 100);
}

static void exact_times_take_the_place_of_others(void) {
    static struct es_costs table;
    struct es_cost *entry = es_costs_find(&table, 7);

    CHECK(!es_costs_vague(&table, entry));
    learn(&table, 7, 20000);
    CHECK(es_costs_vague(&table, entry));
    entry->pending_since_ns = 5;
    CHECK(!es_costs_vague(&table, entry));
    es_costs_learn_exact(&table, 7, 2000, true);
    CHECK(entry->ns == 2000 && entry->pending_since_ns == 0 && !es_costs_sure(entry) && es_costs_vague(&table, entry));
    es_costs_learn_exact(&table, 7, 2010, true);
    CHECK(entry->ns == 2005 && es_costs_sure(entry) && !es_costs_vague(&table, entry));
    /* Now and then once more. */
    for (int i = 0; i <= ES_COSTS_SURE_STALE; i++) {
        CHECK(!es_costs_vague(&table, entry));
        es_costs_count(&table, false);
        es_costs_miss(&table, 7, 1);
    }
    CHECK(es_costs_vague(&table, entry));
    /* It takes longer now than what is over before its marker is recorded: other times do as well. */
    for (int i = 0; i < 100; i++)
        es_costs_learn_exact(&table, 7, 2 * ES_COSTS_SHORT_NS, true);
    CHECK(entry->exact == 0 && !es_costs_sure(entry) && !es_costs_vague(&table, entry));
}

static void what_is_assumed_of_a_function_is_exact_until_that_is_found_to_be_wrong(void) {
    static struct es_costs table;
    struct es_cost *entry = es_costs_find(&table, 7);

    es_costs_assume(entry, 2000);
    CHECK(es_costs_sure(entry) && !es_costs_vague(&table, entry) && es_costs_known_ns(&table, entry, 7, true) == 2000);
    for (int i = 0; i < ES_COSTS_DOUBTS / ES_COSTS_DOUBT; i++)
        es_costs_judge(&table, true);
    CHECK(!es_costs_sure(entry) && entry->exact == 0);
}

static void an_exact_time_that_no_other_bears_out_gives_way_to_a_shorter_one(void) {
    static struct es_costs table;
    struct es_cost *entry = es_costs_find(&table, 7);

    learn(&table, 7, 20000);
    es_costs_learn_exact(&table, 7, 3254, true);
    es_costs_learn_exact(&table, 7, 2000, true);
    CHECK(entry->ns == 2000 && entry->exact == 1 && !es_costs_sure(entry) && es_costs_vague(&table, entry));
    es_costs_learn_exact(&table, 7, 2010, true);
    CHECK(entry->ns == 2005 && entry->exact == 2 && es_costs_sure(entry));
    /* Two that bear each other out are not given up for one. */
    es_costs_learn_exact(&table, 7, 1500, true);
    CHECK(entry->exact == 3 && entry->ns > 1800);
}

static void one_that_is_due_and_cannot_be_timed_keeps_nobody_waiting(void) {
    static struct es_costs table;
    struct es_cost *entry = es_costs_find(&table, 7), *other = es_costs_find(&table, 8);

    learn(&table, 7, 2000);
    learn(&table, 8, 2000);
    for (int i = 0; i < 2 * ES_COSTS_STALE; i++) {
        es_costs_count(&table, false);
        es_costs_miss(&table, 7, 1);
        if (i % 2 == 0)
            es_costs_miss(&table, 8, 1);
    }
    es_costs_miss(&table, 8, 1);
    CHECK(es_costs_due(&table, entry) && !es_costs_due(&table, other));
    es_costs_put_off(&table, other);
    CHECK(es_costs_due(&table, entry));
    es_costs_put_off(&table, entry);
    /* That was its turn: the next one is some batches later. */
    for (int i = 0; i < ES_COSTS_APART; i++) {
        CHECK(!es_costs_due(&table, entry) && !es_costs_due(&table, other));
        es_costs_count(&table, false);
        es_costs_miss(&table, 8, 1);
    }
    CHECK(!es_costs_due(&table, entry) && es_costs_due(&table, other));
}

static void where_exact_times_are_unlike_each_other_all_times_count(void) {
    static struct es_costs table;
    struct es_cost *entry = es_costs_find(&table, 7);

    learn(&table, 7, 10000);
    es_costs_learn_exact(&table, 7, 2000, true);
    es_costs_learn_exact(&table, 7, 2000, true);
    CHECK(es_costs_sure(entry));
    es_costs_learn_exact(&table, 7, 20000, true);
    CHECK(!es_costs_sure(entry) && entry->exact == 0 && !es_costs_vague(&table, entry));
    /* The same where it cannot be timed like that. */
    learn(&table, 8, 2000);
    es_costs_learn_exact(&table, 8, 2000, true);
    es_costs_learn_exact(&table, 8, 2000, true);
    es_costs_give_up(&table, 8);
    entry = es_costs_find(&table, 8);
    CHECK(!es_costs_sure(entry) && entry->exact == 0 && !es_costs_vague(&table, entry));
}

static void exact_times_that_are_found_wrong_again_and_again_are_given_up(void) {
    static struct es_costs table;

    for (uint64_t key = 1; key <= 2; key++) {
        learn(&table, key, 2000);
        es_costs_learn_exact(&table, key, 2000, true);
        es_costs_learn_exact(&table, key, 2000, true);
    }
    /* Now and then does not count. */
    for (int i = 0; i < 1000; i++)
        es_costs_judge(&table, i % (2 * ES_COSTS_DOUBT) == 0);
    CHECK(es_costs_sure(es_costs_find(&table, 1)));
    for (int i = 0; i < ES_COSTS_DOUBTS / ES_COSTS_DOUBT; i++)
        es_costs_judge(&table, true);
    CHECK(!es_costs_sure(es_costs_find(&table, 1)) && !es_costs_sure(es_costs_find(&table, 2)));
    CHECK(!es_costs_vague(&table, es_costs_find(&table, 1)) && table.doubts == 0);
}

static void of_exact_times_that_others_may_have_made_longer_the_shortest_counts(void) {
    static struct es_costs table;
    struct es_cost *entry = es_costs_find(&table, 7);

    learn(&table, 7, 20000);
    es_costs_learn_exact(&table, 7, 6000, false);
    CHECK(entry->ns == 6000 && entry->exact == 1);
    es_costs_learn_exact(&table, 7, 9000, false);
    CHECK(entry->ns == 6000 && entry->exact == 1);
    es_costs_learn_exact(&table, 7, 2000, false);
    CHECK(entry->ns == 2000 && entry->exact == 1);
    es_costs_learn_exact(&table, 7, 2000, false);
    CHECK(entry->ns == 2000 && es_costs_sure(entry));
    /* Unless one comes in which no other ran. */
    es_costs_learn_exact(&table, 7, 1500, true);
    es_costs_learn_exact(&table, 7, 1000, false);
    es_costs_learn_exact(&table, 7, 1500, true);
    CHECK(entry->exact == 3 && es_costs_sure(entry) && entry->ns > 1300);
    /* Where others always run in between, it is not tried without end. */
    learn(&table, 8, 2000);
    entry = es_costs_find(&table, 8);
    for (int i = 0; i < ES_COSTS_TRIES; i++) {
        CHECK(es_costs_vague(&table, entry));
        entry->tries++;
        es_costs_learn_exact(&table, 8, 9000, false);
    }
    CHECK(!es_costs_vague(&table, entry) && entry->ns == 2000 && entry->exact == 0);
}

static int64_t known_ns(struct es_costs *table, uint64_t key) {
    return es_costs_known_ns(table, es_costs_look(table, key), key, false);
}

static void the_first_launches_of_a_short_function_ask_until_it_was_timed_exactly(void) {
    static struct es_costs table;
    struct es_cost *entry = es_costs_find(&table, 7);

    /* Half of its first time may be the host's, which takes 10 us a call. */
    es_costs_call(&table, 7, 10000, 0);
    es_costs_learn(&table, 7, ES_COSTS_SHORT_NS + 15000);
    CHECK(known_ns(&table, 7) == 0 && es_costs_vague(&table, entry));
    /* One is on its way, which others are not to wait for. */
    entry->pending_since_ns = 5;
    for (int i = 0; i < 2 * ES_COSTS_ASKS; i++)
        es_costs_ask(&table, entry);
    CHECK(known_ns(&table, 7) == 0);
    es_costs_learn_exact(&table, 7, 2000, true);
    es_costs_ask(&table, entry);
    CHECK(known_ns(&table, 7) == 0);
    es_costs_learn_exact(&table, 7, 2000, true);
    CHECK(known_ns(&table, 7) == 2000);
    /* Where it cannot be done they do not ask without end. */
    es_costs_learn(&table, 8, 3000);
    entry = es_costs_find(&table, 8);
    for (int i = 0; i < ES_COSTS_ASKS; i++) {
        CHECK(known_ns(&table, 8) == 0);
        es_costs_ask(&table, entry);
    }
    CHECK(known_ns(&table, 8) == 3000);
    /* A long one need not be timed like that. */
    es_costs_learn(&table, 9, ES_COSTS_SHORT_NS + 25000);
    CHECK(known_ns(&table, 9) == ES_COSTS_SHORT_NS + 25000);
}

static void equal_times_that_others_made_longer_are_not_taken_for_exact_for_long(void) {
    static struct es_costs table;
    struct es_cost *entry = es_costs_find(&table, 7);

    learn(&table, 7, 20000);
    es_costs_learn_exact(&table, 7, 10000, false);
    es_costs_learn_exact(&table, 7, 10000, false);
    CHECK(es_costs_sure(entry) && es_costs_vague(&table, entry));
    entry->tries = ES_COSTS_TRIES;
    CHECK(!es_costs_vague(&table, entry));
    for (int i = 0; i <= ES_COSTS_STALE; i++) {
        es_costs_count(&table, false);
        es_costs_miss(&table, 7, 1);
    }
    CHECK(es_costs_vague(&table, entry));
    es_costs_learn_exact(&table, 7, 5000, true);
    es_costs_learn_exact(&table, 7, 5000, true);
    CHECK(entry->ns == 5000 && es_costs_sure(entry) && !es_costs_vague(&table, entry));
}

static void a_gap_in_an_exact_time_does_not_count_beside_others(void) {
    static struct es_costs table;
    struct es_cost *entry = es_costs_find(&table, 7);

    learn(&table, 7, 9000);
    CHECK(es_costs_usual_ns(entry, true) == 9000);
    es_costs_learn_exact(&table, 7, 5000, true);
    es_costs_learn_exact(&table, 7, 6300, true);
    CHECK(entry->ns == 5650 && es_costs_usual_ns(entry, false) == 5650 && es_costs_usual_ns(entry, true) == 5000);
    es_costs_learn_exact(&table, 7, 6300, true);
    CHECK(es_costs_usual_ns(entry, true) == 5000);
    /* What is apart by as much as such times are counts in the mean. */
    es_costs_learn_exact(&table, 7, 5200, true);
    CHECK(es_costs_usual_ns(entry, true) == 5100 && es_costs_known_ns(&table, entry, 7, true) == 5100);
    es_costs_give_up(&table, 7);
    CHECK(es_costs_usual_ns(entry, true) == entry->ns);
}

static void beside_others_the_shortest_time_counts_until_one_is_seen_without(void) {
    static struct es_costs table;
    struct es_cost *entry = es_costs_find(&table, 7);

    entry->pending_since_ns = 5;
    es_costs_learn_beside(&table, 7, 90000);
    CHECK(entry->ns == 90000 && entry->samples == 1 && entry->provisional && entry->pending_since_ns == 0);
    es_costs_learn_beside(&table, 7, 30000);
    es_costs_learn_beside(&table, 7, 200000);
    CHECK(entry->ns == 30000 && entry->samples == 1);
    /* A part in a time of several by such estimates is no better, and all of that time no less than the shortest. */
    es_costs_learn_part(&table, 7, 9000, 40000);
    CHECK(entry->ns == 30000 && entry->provisional);
    entry->missed = ES_COSTS_GUESSES;
    es_costs_learn_part(&table, 7, 9000, 40000);
    CHECK(entry->ns == 30000 && !entry->provisional);
    /* The first time without others takes its place, however long, and then those beside others say nothing. */
    es_costs_learn_beside(&table, 8, 30000);
    entry = es_costs_find(&table, 8);
    entry->tries = ES_COSTS_TRIES;
    learn(&table, 8, 31000);
    CHECK(entry->ns == 31000 && entry->samples == 1 && !entry->provisional && es_costs_vague(&table, entry));
    es_costs_learn_beside(&table, 8, 500);
    es_costs_learn_beside(&table, 8, 900000);
    CHECK(entry->ns == 31000 && entry->samples == 1);
    es_costs_learn_beside(&table, 9, 30000);
    es_costs_learn_exact(&table, 9, 4000, true);
    entry = es_costs_find(&table, 9);
    CHECK(entry->ns == 4000 && entry->exact == 1 && !entry->provisional);
    /* It is as good as known for what comes next, and timed once more when its turn has come. */
    es_costs_learn_beside(&table, 10, 1);
    CHECK(known_ns(&table, 10) == ES_COSTS_LEAST_NS);
    es_costs_find(&table, 10)->missed = 9;
    es_costs_learn_beside(&table, 10, 800);
    CHECK(es_costs_find(&table, 10)->missed == 0);
    /* Another function in its place is not one that was seen beside others. */
    for (uint64_t key = 1000; key < 1000 + 4 * ES_COSTS; key++)
        CHECK(!es_costs_find(&table, key)->provisional);
}

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

static void a_function_that_is_not_known_or_due_again_has_no_cost(void) {
    static struct es_costs table;

    CHECK(known_ns(&table, 5) == 0);
    es_costs_share(&table, es_costs_look(&table, 5));
    CHECK(es_costs_find(&table, 5)->missed == 0 && known_ns(&table, 5) == 0);
    learn(&table, 5, 700);
    for (int batch = 0; batch < ES_COSTS_STALE; batch++) {
        es_costs_count(&table, false);
        es_costs_share(&table, es_costs_look(&table, 5));
    }
    CHECK(known_ns(&table, 5) == 700);
    es_costs_share(&table, es_costs_look(&table, 5));
    CHECK(known_ns(&table, 5) == 0);
    learn(&table, 5, 700);
    CHECK(known_ns(&table, 5) == 700);
}

/* All share each batch, and all are due: they are seen one by one, some batches apart, and none before all others were. */
static void of_functions_that_are_due_one_is_timed_alone_now_and_then(void) {
    enum { FUNCTIONS = 40 };
    static struct es_costs table;
    int alone[FUNCTIONS + 1] = {0}, since = 0;

    for (uint64_t key = 1; key <= FUNCTIONS; key++)
        learn(&table, key, 700);
    for (int batch = 0; batch < ES_COSTS_STALE + 2 * FUNCTIONS * (ES_COSTS_APART + 1); batch++) {
        uint64_t due = 0;

        for (uint64_t key = 1; key <= FUNCTIONS && due == 0; key++)
            due = known_ns(&table, key) == 0 ? key : 0;
        es_costs_count(&table, due != 0);
        since++;
        if (due != 0) {
            CHECK(since > ES_COSTS_APART);
            since = 0;
            alone[due]++;
            learn(&table, due, 700);
        }
        for (uint64_t key = 1; key <= FUNCTIONS; key++) {
            if (key != due)
                es_costs_share(&table, es_costs_look(&table, key));
        }
    }
    for (int key = 1; key <= FUNCTIONS; key++)
        CHECK(alone[key] == 1 || alone[key] == 2);
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

static void a_call_is_compared_with_its_like(void) {
    static struct es_costs calls;

    /* Short ones are as they should be, and the first long one may be its thread's fault. */
    CHECK(es_costs_call(&calls, 1, ES_COSTS_CALL_NS, 0));
    CHECK(!es_costs_call(&calls, 2, 3 * ES_COSTS_CALL_NS, 0));
    /* The second is like the first; what took a hundred times as long was put aside, and makes little difference. */
    CHECK(es_costs_call(&calls, 2, 4 * ES_COSTS_CALL_NS, 0));
    CHECK(!es_costs_call(&calls, 2, 300 * ES_COSTS_CALL_NS, 0));
    CHECK(!es_costs_call(&calls, 2, 8 * ES_COSTS_CALL_NS, 0));
    CHECK(es_costs_call(&calls, 2, 3 * ES_COSTS_CALL_NS, 0));
    /* One that is always slower from now on becomes usual. */
    for (int i = 0; i < 50; i++)
        (void)es_costs_call(&calls, 2, 12 * ES_COSTS_CALL_NS, 0);
    CHECK(es_costs_call(&calls, 2, 12 * ES_COSTS_CALL_NS, 0));
    /* What is timed may have so much of the host in it: the call that submits and the one that ends it. */
    CHECK(es_costs_host_ns(&calls, 3) == 6 * calls.call_ns && calls.call_ns != 0 && es_costs_host_ns(&calls, 0) == 0);
    /* A new function is judged by all; a call that may wait for the device changes nothing, whatever it took. */
    CHECK(es_costs_call(&calls, 3, 12 * ES_COSTS_CALL_NS, 0));
    CHECK(!es_costs_call(&calls, 4, 300 * ES_COSTS_CALL_NS, 1));
    CHECK(!es_costs_call(&calls, 4, 300 * ES_COSTS_CALL_NS, 1));
}

static void a_timeline_counts_down(void) {
    struct es_timeline line = {0};

    CHECK(es_timeline_queued_ns(&line, 0, 100) == 0);
    /* A batch is opened at 100 and submits 500 at once. */
    es_timeline_look(&line, 0, 100);
    CHECK(es_timeline_queued_ns(&line, 500, 100) == 500 && es_timeline_queued_ns(&line, 500, 300) == 300);
    CHECK(es_timeline_queued_ns(&line, 500, 100000) == 0 && es_timeline_overdue_ns(&line, 100000) == 0);
    es_timeline_close(&line, 500);
    es_timeline_settle(&line, 500);
    CHECK(es_timeline_queued_ns(&line, 0, 100) == 500 && es_timeline_queued_ns(&line, 0, 650) == 0);
    CHECK(es_timeline_overdue_ns(&line, 600) == 0 && es_timeline_overdue_ns(&line, 650) == 50);
    /* What stands behind an overdue head keeps its length. */
    es_timeline_close(&line, 1500);
    es_timeline_settle(&line, 1000);
    CHECK(es_timeline_queued_ns(&line, 0, 5000) == 1000 && es_timeline_queued_ns(&line, 70, 5000) == 1070);
    es_timeline_end(&line, 500, 1500, 5000);
    CHECK(es_timeline_queued_ns(&line, 0, 5000) == 1000 && es_timeline_queued_ns(&line, 0, 5400) == 600);
    es_timeline_end(&line, 1500, 0, 6000);
    CHECK(es_timeline_queued_ns(&line, 0, 6000) == 0 && es_timeline_overdue_ns(&line, 9000) == 0);
    /* A look leaves a head as it is; how late that is counts from when it began, and from what had run by then. */
    es_timeline_close(&line, 1900);
    es_timeline_settle(&line, 400);
    CHECK(es_timeline_queued_ns(&line, 0, 6100) == 300);
    es_timeline_look(&line, 0, 6420);
    CHECK(es_timeline_overdue_ns(&line, 6450) == 50);
    /* Of two that were closed at once the later marker may come first: what has run stays so. */
    es_timeline_settle(&line, 100);
    es_timeline_end(&line, 1900, 1850, 6500);
    es_timeline_end(&line, 1850, 2000, 6500);
    CHECK(es_timeline_queued_ns(&line, 0, 6500) == 100);
    es_timeline_end(&line, 2000, 0, 6600);
    CHECK(es_timeline_queued_ns(&line, 0, 6600) == 0);
}

static void a_timeline_credits_no_time_to_what_came_after_it(void) {
    struct es_timeline line = {0};

    /* 80 are submitted and run; nobody submits until 1000; then 300 come. */
    es_timeline_look(&line, 0, 0);
    es_timeline_look(&line, 80, 1000);
    CHECK(es_timeline_queued_ns(&line, 380, 1000) == 300 && es_timeline_queued_ns(&line, 380, 1100) == 200);
    /* Waited for at 1500, so all has run, whatever the estimate said. */
    es_timeline_settle(&line, 5000);
    CHECK(es_timeline_queued_ns(&line, 0, 1500) == 0);
    es_timeline_look(&line, 0, 1500);
    CHECK(es_timeline_queued_ns(&line, 60, 1500) == 60);
    /* Closed where nothing else is: what was waited for before stays run. */
    es_timeline_settle(&line, 700);
    es_timeline_close(&line, 5760);
    es_timeline_settle(&line, 60);
    CHECK(es_timeline_queued_ns(&line, 0, 1500) == 60);
}

/* Two threads launch in turn: what one has open and has run is not queued, however often the other's batches end. */
static void a_timeline_counts_a_sleeping_threads_work_once(void) {
    struct es_timeline line = {0};
    uint64_t now_ns = 1000, other_ns = 80;

    es_timeline_look(&line, 0, 0);
    for (int i = 0; i < 10; i++) {
        es_timeline_look(&line, other_ns, now_ns);
        CHECK(es_timeline_queued_ns(&line, other_ns, now_ns) == 0);
        CHECK(es_timeline_queued_ns(&line, other_ns + 20, now_ns) == 20);
        es_timeline_close(&line, line.settled_ns + other_ns + 20);
        es_timeline_settle(&line, 20);
        es_timeline_end(&line, line.settled_ns + other_ns, 0, now_ns + 20);
        CHECK(es_timeline_queued_ns(&line, other_ns, now_ns + 20) == 0);
        now_ns += 50;
    }
    /* A marker is done: so is what the other thread had submitted when it was recorded, and no more. */
    es_timeline_close(&line, line.settled_ns + other_ns);
    other_ns += 400;
    es_timeline_end(&line, line.head_ns, 0, now_ns);
    CHECK(es_timeline_queued_ns(&line, other_ns, now_ns) == 400);
    /* Given up without a launch: nothing of it is queued, and what comes next is counted from there. */
    CHECK(es_timeline_queued_ns(&line, 0, now_ns) == 0);
    es_timeline_look(&line, 0, now_ns);
    CHECK(es_timeline_queued_ns(&line, 30, now_ns) == 30);
}

static void a_batch_alone_counts_what_its_markers_say(void) {
    /* Until 2,000 all that was submitted, 700, was counted. */
    const struct es_counted latest = {.ended_ns = 2000, .mark_ns = 700};
    struct es_work work = {.cost_ns = 300, .opened_ns = 5000, .before_ns = 700, .mark_ns = 1000, .behind_ns = 20, .fresh = true};
    struct es_spent spent = es_spent_by(&work, &latest, ES_UNTOLD, 3500, 5600);

    /* It began at a time that nobody knows: the estimate. */
    CHECK(!spent.measured && !spent.teaches && spent.gpu_ns == 300 && spent.ended_ns == 5503 && spent.passed_ns == 0);
    /* It was started. */
    work.fresh = false;
    spent = es_spent_by(&work, &latest, 320, 3500, 5600);
    CHECK(spent.measured && spent.teaches && spent.gpu_ns == 300 && spent.own_ns == 300 && spent.passed_ns == 300);
    /* It followed another, though later than that ended; and at once. */
    spent = es_spent_by(&work, &latest, ES_UNTOLD, 3400, 5600);
    CHECK(spent.measured && spent.teaches && spent.gpu_ns == 400 && spent.own_ns == 400);
    work.opened_ns = 1500;
    spent = es_spent_by(&work, &latest, ES_UNTOLD, 450, 5600);
    CHECK(spent.gpu_ns == 450 && spent.own_ns == 450 && spent.ended_ns == 2450);
    /* It ended before what was counted: in another stream. */
    spent = es_spent_by(&work, &latest, ES_UNTOLD, -50, 5600);
    CHECK(spent.behind && !spent.teaches && spent.gpu_ns == 0 && spent.ended_ns == 5600);
    /* The driver says nothing. */
    spent = es_spent_by(&work, &latest, ES_UNTOLD, ES_UNTOLD, 5600);
    CHECK(!spent.measured && !spent.teaches && spent.gpu_ns == 300);
}

static void a_start_tells_as_much_as_is_sure_of_it(void) {
    /* The launch returned 15,000 after the start, and that may have been long after the device had begun. */
    const struct es_counted latest = {.ended_ns = 2000, .mark_ns = 700};
    struct es_work work = {
        .cost_ns = 300, .opened_ns = 500000, .before_ns = 700, .mark_ns = 1000, .behind_ns = 15000, .unsure_ns = 15000};
    struct es_spent spent = es_spent_by(&work, &latest, 15000 + 5000000, 5600000, 5600000);

    /* Of 5 ms it is little. */
    CHECK(spent.measured && spent.teaches && spent.gpu_ns == 5000000 && spent.own_ns == 5000000);
    /* Of 50 us it is not: as if there were no start. */
    spent = es_spent_by(&work, &latest, 15000 + 50000, 600000, 600000);
    CHECK(!spent.measured && !spent.teaches && spent.gpu_ns == 300);
    /* Where the call took as long as it always does, the device began when it returned. */
    work.unsure_ns = 0;
    spent = es_spent_by(&work, &latest, 15000 + 50000, 600000, 600000);
    CHECK(spent.measured && spent.teaches && spent.whole && spent.gpu_ns == 50000 && spent.own_ns == 50000);
    /* Others' launches of 100 ran in the same time, so what is its own is taken from estimates. */
    work.mark_ns = 1100;
    spent = es_spent_by(&work, &latest, 15000 + 50000, 600000, 600000);
    CHECK(spent.teaches && !spent.whole && spent.own_ns == 37500);
}

static void an_end_that_is_seen_late_is_taken_for_later_by_no_more_than_clocks_drift(void) {
    const struct es_counted latest = {.ended_ns = UINT64_C(1000000000), .mark_ns = 700};
    const struct es_work work = {.cost_ns = 300, .opened_ns = 1020000000, .before_ns = 700, .mark_ns = 1000};

    CHECK(es_spent_by(&work, &latest, ES_UNTOLD, 30000000, 1100000000).ended_ns == 1030000000 + 250 + 30000000 / 8192);
    CHECK(es_spent_by(&work, &latest, ES_UNTOLD, 20480, 1100000000).ended_ns == 1000020500);
    CHECK(es_spent_by(&work, &latest, ES_UNTOLD, 30000000, 1030000100).ended_ns == 1030000100);
}

static void a_burst_that_the_host_could_not_keep_up_with_counts_its_estimate(void) {
    const struct es_counted latest = {.ended_ns = 2000, .mark_ns = 700};
    struct es_work work = {.cost_ns = 300, .opened_ns = 5000, .before_ns = 700, .mark_ns = 1000, .alone_ns = 6000};
    struct es_spent spent = es_spent_by(&work, &latest, 1010, 4010, 6100);

    CHECK(spent.gpu_ns == 300 && !spent.teaches);
    /* Closed as soon as that, it may have been running all the time; and where it ended long after that, it was. */
    work.alone_ns = 5200;
    spent = es_spent_by(&work, &latest, 1010, 4010, 6100);
    CHECK(spent.gpu_ns == 1010 && spent.teaches && spent.passed_ns == 1010);
    work.alone_ns = 6000;
    spent = es_spent_by(&work, &latest, 5000000, 5003000, 5010000);
    CHECK(spent.gpu_ns == 5000000 && spent.teaches);
    /* The marker had been recorded before it can have ended, so that it ran, however soon that was. */
    work.marked_ns = 7000;
    spent = es_spent_by(&work, &latest, 300000, 303000, 306000);
    CHECK(spent.gpu_ns == 300000 && spent.teaches);
    /* Recorded long after: the device had come to the start at once, so that it idled, however late that was seen. */
    work.alone_ns = work.marked_ns = 5000000;
    work.reached = true;
    spent = es_spent_by(&work, &latest, 5000000, 5003000, 9000000);
    CHECK(spent.gpu_ns == 300 && !spent.teaches);
    work.reached = false;
    spent = es_spent_by(&work, &latest, 5000000, ES_UNTOLD, 9000000);
    CHECK(spent.gpu_ns == 5000000 && spent.teaches);
    /* Nor does it matter that the host's time of an end may creep. */
    spent = es_spent_by(&work, &latest, ES_UNTOLD, 4998000, 9000000);
    CHECK(spent.gpu_ns == 300 && !spent.teaches);
}

static void what_takes_as_long_as_is_known_counts_that_however_long_the_host_took(void) {
    const struct es_counted latest = {.ended_ns = 2000, .mark_ns = 700};
    struct es_work work = {
        .cost_ns = 640, .opened_ns = 5000, .before_ns = 700, .mark_ns = 1340, .marked_ns = 20000, .launches = 2};
    struct es_spent spent = es_spent_by(&work, &latest, 15000, 18000, 21000);

    CHECK(spent.gpu_ns == 15000 && spent.teaches);
    work.known_ns = 640;
    spent = es_spent_by(&work, &latest, 15000, 18000, 21000);
    CHECK(spent.gpu_ns == 640 && !spent.teaches && spent.known && !spent.longer);
    /* On a busy device the markers say it better. */
    CHECK(es_spent_by(&work, &latest, 650, 3650, 21000).gpu_ns == 650);
    CHECK(es_spent_by(&work, &latest, 630, 3630, 21000).gpu_ns == 630);
    /* It ended later than a launch's time after its last had been submitted. */
    CHECK(es_spent_by(&work, &latest, 25300, 28300, 106000).gpu_ns == 640);
    spent = es_spent_by(&work, &latest, 25400, 28400, 106000);
    CHECK(spent.gpu_ns == 25400 && spent.teaches && spent.longer);
    /* Where that is not known, it is if the host did nothing for long. */
    spent = es_spent_by(&work, &latest, ES_UNTOLD, 390000 + 3000, 500000);
    CHECK(spent.gpu_ns == 640 && !spent.longer);
    spent = es_spent_by(&work, &latest, ES_UNTOLD, 410000 + 3000, 500000);
    CHECK(spent.gpu_ns == 640 && spent.longer);
    /* Whose thread did other things when it was closed may have launched now and then. */
    work.foreign = true;
    CHECK(!es_spent_by(&work, &latest, ES_UNTOLD, 410000 + 3000, 500000).longer);
    CHECK(es_spent_by(&work, &latest, 25400, 28400, 106000).longer);
    /* Of what ran in that time, the first was not known. */
    work.known_ns = 639;
    CHECK(es_spent_by(&work, &latest, 15000, 18000, 21000).gpu_ns == 15000);
}

static void what_ran_after_its_marker_was_there_is_told_however_short_it_should_have_been(void) {
    /* The end before it had been seen at once, by its start. */
    const struct es_counted latest = {.ended_ns = 2000, .no_sooner_ns = 2000, .mark_ns = 700, .grant = 3};
    struct es_work work = {.cost_ns = 640,
                           .opened_ns = 1000,
                           .before_ns = 700,
                           .mark_ns = 1340,
                           .marked_ns = 1900,
                           .launches = 2,
                           .known_ns = 640,
                           .grant = 3};
    struct es_spent spent = es_spent_by(&work, &latest, ES_UNTOLD, 8192000, 9000000);

    CHECK(spent.gpu_ns == 8192000 - 250 - 1000 && spent.no_sooner_ns == 2000 + spent.gpu_ns && !spent.teaches);
    /* From when the marker had been recorded: before that, the host may have been slow. */
    work.marked_ns = 4002000;
    CHECK(es_spent_by(&work, &latest, ES_UNTOLD, 8192000, 9000000).gpu_ns == 8192000 - 250 - 1000 - 4000000);
    /* Behind others' work, of the grant before or after this one, it may have waited for that. */
    work.grant = 4;
    CHECK(es_spent_by(&work, &latest, ES_UNTOLD, 8192000, 9000000).gpu_ns == 640);
    work.grant = 3;
    work.left = true;
    CHECK(es_spent_by(&work, &latest, ES_UNTOLD, 8192000, 9000000).gpu_ns == 640);
    work.left = false;
    work.stalled = true;
    CHECK(es_spent_by(&work, &latest, ES_UNTOLD, 8192000, 9000000).gpu_ns == 640);
    work.stalled = false;
    /* An end that may have been seen late says nothing of when the next one was. */
    spent = es_spent_by(&work, &(struct es_counted){.ended_ns = 2000, .mark_ns = 700, .grant = 3}, ES_UNTOLD, 8192000, 9000000);
    CHECK(spent.gpu_ns == 640 && spent.no_sooner_ns == 1000);
    /* Its own start does: that was no sooner than it was opened. Nor did it end after it was seen. */
    CHECK(es_spent_by(&work, &latest, 8193000, 8192000, 9000000).no_sooner_ns == 1000 + 8193000);
    CHECK(es_spent_by(&work, &latest, 8193000, 8192000, 8000000).no_sooner_ns == 8000000);
}

static void of_a_batch_that_was_open_when_the_marker_before_it_was_recorded_nothing_is_learned(void) {
    /* Two threads launch, and then both mark: the second's kernel is before the first's marker. */
    const struct es_counted latest = {.ended_ns = 2000, .marked_ns = 1500, .mark_ns = 700};
    struct es_work work = {.cost_ns = 300, .opened_ns = 1400, .before_ns = 400, .mark_ns = 1000, .marked_ns = 1600};

    CHECK(!es_spent_by(&work, &latest, ES_UNTOLD, 0, 5600).teaches);
    CHECK(!es_spent_by(&work, &latest, ES_UNTOLD, 290, 5600).teaches);
    /* It took longer than it should have. */
    CHECK(es_spent_by(&work, &latest, ES_UNTOLD, 310, 5600).teaches);
    work.opened_ns = 1500;
    CHECK(es_spent_by(&work, &latest, ES_UNTOLD, 290, 5600).teaches);
}

static void a_marker_behind_others_work_makes_no_exact_time_longer(void) {
    struct es_counted latest = {.ended_ns = 2000, .mark_ns = 700};
    /* Its thread was put aside, and others were let in before it came to record the marker. */
    struct es_work work = {.cost_ns = 300, .opened_ns = 5000, .before_ns = 700, .mark_ns = 1000, .known_ns = 300};
    struct es_spent spent;

    work.launches = 10;
    work.marked_ns = 3000000;
    work.left = true;
    spent = es_spent_by(&work, &latest, 20000000, 20003000, 21000000);
    CHECK(spent.gpu_ns == 300 && spent.known && !spent.longer && !spent.teaches);
    /* Nor where all of it had been counted with what ended before. */
    latest = (struct es_counted){.ended_ns = 6000, .mark_ns = 1000};
    spent = es_spent_by(&work, &latest, ES_UNTOLD, 19999000, 21000000);
    CHECK(spent.gpu_ns == 0 && spent.known && !spent.longer && !spent.teaches);
    /* Of times that are not exact the measured one counts. */
    work.known_ns = 0;
    CHECK(es_spent_by(&work, &latest, ES_UNTOLD, 19999000, 21000000).gpu_ns == 19999000);
    work.known_ns = 300;
    work.left = false;
    CHECK(es_spent_by(&work, &latest, ES_UNTOLD, 19999000, 21000000).gpu_ns == 19999000);
}

static void a_launch_between_two_markers_that_were_there_before_it_ran_tells_its_time(void) {
    const struct es_counted latest = {.ended_ns = 2000, .mark_ns = 700};
    struct es_work work = {.cost_ns = 20000,
                           .opened_ns = 5000,
                           .before_ns = 700,
                           .mark_ns = 20700,
                           .alone_ns = 26000,
                           .marked_ns = 26000,
                           .exact = true,
                           .lone = true};
    struct es_spent spent = es_spent_by(&work, &latest, 2000, 25000, 28000);

    CHECK(spent.gpu_ns == 2000 && spent.teaches && spent.whole && spent.own_ns == 2000);
    /* Another thread was about to submit something meanwhile. */
    work.lone = false;
    spent = es_spent_by(&work, &latest, 2000, 25000, 28000);
    CHECK(spent.teaches && !spent.whole && spent.own_ns == 2000);
    work.lone = true;
    /* Others of 5000 ran in that time, or did not. */
    work.mark_ns = 25700;
    spent = es_spent_by(&work, &latest, 2000, 25000, 28000);
    CHECK(spent.teaches && !spent.whole && spent.own_ns == 2000);
    /* Of one that is over sooner than events resolve, that is known. */
    spent = es_spent_by(&work, &latest, 100, 25000, 28000);
    CHECK(spent.teaches && spent.own_ns == 100);
    /* Between two markers of which one stands right behind the other nothing was launched. */
    CHECK(!es_spent_by(&work, &latest, 0, 25000, 28000).teaches);
    /* Another thread's end came in between. */
    CHECK(!es_spent_by(&work, &latest, 2000, 1500, 28000).teaches);
    /* What stood behind it waited with its stream. */
    work = (struct es_work){.cost_ns = 300, .opened_ns = 26000, .before_ns = 700, .mark_ns = 1000, .stalled = true};
    spent = es_spent_by(&work, &latest, ES_UNTOLD, 100000, 130000);
    CHECK(spent.gpu_ns == 300 && !spent.teaches);
}

static void batches_of_two_threads_are_counted_once(void) {
    /* Both are opened on an idle device, submit 140 and 100, and are closed one after the other: the first marker comes
     * after all of both. */
    struct es_counted latest = {.ended_ns = 2000, .mark_ns = 700};
    struct es_work first = {.cost_ns = 140, .opened_ns = 5000, .before_ns = 700, .mark_ns = 940, .fresh = true};
    struct es_work second = {.cost_ns = 100, .opened_ns = 5001, .before_ns = 700, .mark_ns = 940};
    struct es_spent spent = es_spent_by(&first, &latest, ES_UNTOLD, 3240, 5300);

    CHECK(spent.gpu_ns == 240 && !spent.teaches);
    latest = (struct es_counted){.ended_ns = 5240, .mark_ns = 940};
    spent = es_spent_by(&second, &latest, ES_UNTOLD, 0, 5300);
    CHECK(spent.gpu_ns == 0 && !spent.teaches);
    /* Also where it has a start of its own, from before the first one's end. */
    spent = es_spent_by(&second, &latest, 240, 0, 5300);
    CHECK(spent.gpu_ns == 0 && !spent.teaches);
    /* Measured, the first learns its part of the time that both took: all were twice as long as estimated. */
    latest = (struct es_counted){.ended_ns = 2000, .mark_ns = 700};
    first.fresh = false;
    spent = es_spent_by(&first, &latest, 480, 3480, 5600);
    CHECK(spent.gpu_ns == 480 && spent.teaches && spent.own_ns == 280);
}

static void beside_others_a_batch_counts_its_estimate_once(void) {
    struct es_counted latest = {.ended_ns = 2000, .mark_ns = 700};
    struct es_work work = {.cost_ns = 300, .opened_ns = 1500, .before_ns = 700, .mark_ns = 1000, .launches = 1, .beside = true};
    struct es_spent spent = es_spent_by(&work, &latest, ES_UNTOLD, 450, 5600);

    /* Between its markers another's 150 ran: what it took at most is told, and when it ended. */
    CHECK(spent.gpu_ns == 300 && spent.measured && spent.own_ns == 450 && spent.ended_ns == 2450);
    work.known_ns = 300;
    spent = es_spent_by(&work, &latest, 400, 450, 5600);
    CHECK(spent.gpu_ns == 300 && !spent.known && !spent.longer);
    /* What another thread had submitted in that time counts with it, and what was waited for meanwhile was counted. */
    work.before_ns = 760;
    CHECK(es_spent_by(&work, &latest, ES_UNTOLD, 450, 5600).gpu_ns == 300);
    latest.waited_ns = 60;
    CHECK(es_spent_by(&work, &latest, ES_UNTOLD, 450, 5600).gpu_ns == 240);
    /* It had been submitted before the latest marker: it was counted with that. */
    latest = (struct es_counted){.ended_ns = 2000, .mark_ns = 1000};
    spent = es_spent_by(&work, &latest, ES_UNTOLD, -50, 5600);
    CHECK(spent.gpu_ns == 0 && spent.behind);
    /* The next one, with nobody beside it, is measured from its end. */
    latest = (struct es_counted){.ended_ns = 2450, .mark_ns = 1000};
    work = (struct es_work){.cost_ns = 300, .opened_ns = 2400, .before_ns = 1000, .mark_ns = 1300, .launches = 1};
    CHECK(es_spent_by(&work, &latest, ES_UNTOLD, 320, 5600).gpu_ns == 320);
}

static void beside_others_no_more_is_counted_than_went_by_and_nothing_is_lost(void) {
    struct es_beside beside = {0, 0};
    uint64_t told_ns = 0;

    CHECK(es_spent_beside(&beside, 300, 450, true) == 300 && beside.kept_ns == 0);
    /* A function of 1 and 20 ms in the mean takes 4.8: of four in five what is above 1 is kept, for the fifth. */
    for (int i = 0; i < 1000; i++)
        told_ns += es_spent_beside(&beside, 4800000, i % 5 == 4 ? 20000000 : 1000000, true);
    CHECK(told_ns == UINT64_C(4800000000) && beside.kept_ns == 0);
    /* Of estimates that are always too high not all is kept. */
    for (int i = 0; i < 1000; i++)
        CHECK(es_spent_beside(&beside, 4800000, 1000000, true) == 1000000);
    CHECK(beside.kept_ns == 50000000 && beside.free_ns == 0);
    /* Ends that are seen at once: what went by until the first is the others', too, … */
    beside = (struct es_beside){0, 0};
    CHECK(es_spent_beside(&beside, 2000000, 7000000, true) == 2000000);
    CHECK(es_spent_beside(&beside, 2000000, 0, false) == 2000000);
    CHECK(es_spent_beside(&beside, 2000000, 0, false) == 2000000);
    CHECK(es_spent_beside(&beside, 2000000, 0, false) == 1000000 && beside.kept_ns == 1000000);
    /* … but not what went by before a pause. */
    CHECK(es_spent_beside(&beside, 1000000, 9000000, false) == 2000000 && beside.free_ns == 7000000);
    CHECK(es_spent_beside(&beside, 2000000, 1000000, true) == 1000000 && beside.free_ns == 0);
}

/* By two threads: idle spells end and begin; what is read of them is never more than has passed. */
enum { SPELLS = 200000 };

static struct es_hint_page using;
static bool spells_over;

static void *end_and_begin_spells(void *unused) {
    (void)unused;
    for (uint64_t i = 1; i <= SPELLS; i++) {
        /* Of each ten it is busy for one, and uses all of that. */
        es_used_submit(&using.used, 10 * i);
        es_used_count(&using.used, 1);
        es_used_drain(&using.used, 10 * i + 1);
    }
    __atomic_store_n(&spells_over, true, __ATOMIC_RELEASE);
    return NULL;
}

static void a_spell_is_never_counted_twice(void) {
    struct es_used seen;
    uint64_t gpu_ns = 0, idle_ns = 0;
    pthread_t client;

    es_used_drain(&using.used, 1);
    pthread_create(&client, NULL, end_and_begin_spells, NULL);
    do {
        es_hint_used(&using, &seen);
        CHECK(seen.gpu_ns >= gpu_ns && seen.drained_gpu_ns <= seen.gpu_ns && seen.idle_ns >= idle_ns);
        /* A spell that lasts is one after those that are over. */
        CHECK(seen.idle_since_ns == 0 || seen.idle_ns <= seen.idle_since_ns / 10 * 9);
        gpu_ns = seen.gpu_ns;
        idle_ns = seen.idle_ns;
    } while (!__atomic_load_n(&spells_over, __ATOMIC_ACQUIRE));
    pthread_join(client, NULL);
    es_hint_used(&using, &seen);
    CHECK(seen.gpu_ns == SPELLS && seen.drained_gpu_ns == SPELLS && seen.idle_ns == 9 * SPELLS);
    CHECK(seen.idle_since_ns == 10 * SPELLS + 1 && seen.queued == 0 && seen.waits == 0);
}

static void of_what_ran_between_two_markers_only_what_was_submitted_there_counts(void) {
    struct es_counted latest = {.ended_ns = 2000, .mark_ns = 900};
    struct es_work work = {.cost_ns = 60, .opened_ns = 5000, .before_ns = 700, .mark_ns = 1000, .fresh = true};

    /* Not measured: of the 300 since it was opened, 200 were counted with the latest. */
    CHECK(es_spent_by(&work, &latest, ES_UNTOLD, ES_UNTOLD, 5300).gpu_ns == 100);
    /* Opened after that, when others had submitted 40: nothing else counts them, unless they were waited for. */
    work.before_ns = 940;
    CHECK(es_spent_by(&work, &latest, ES_UNTOLD, ES_UNTOLD, 5300).gpu_ns == 100);
    latest.waited_ns = 40;
    CHECK(es_spent_by(&work, &latest, ES_UNTOLD, ES_UNTOLD, 5300).gpu_ns == 60);
    latest.waited_ns = 0;
    /* An end that was counted since it was opened tells from when on it ran. */
    work.opened_ns = 1900;
    CHECK(es_spent_by(&work, &latest, ES_UNTOLD, 170, 5300).measured);
    CHECK(es_spent_by(&work, &latest, ES_UNTOLD, 170, 5300).gpu_ns == 170);
    /* Of what ran, half was waited for meanwhile and is counted; or all of it and more, by the estimate of before. */
    latest.waited_ns = 50;
    CHECK(es_spent_by(&work, &latest, ES_UNTOLD, 170, 5300).gpu_ns == 85);
    latest.waited_ns = 500;
    CHECK(es_spent_by(&work, &latest, ES_UNTOLD, 170, 5300).gpu_ns == 0);
    latest.waited_ns = 0;
    /* Closed after 150, when all of another thread's 240 and its own 60 need not have ended: busy. */
    work = (struct es_work){.cost_ns = 60, .opened_ns = 5000, .before_ns = 900, .mark_ns = 1200, .alone_ns = 5150};
    CHECK(es_spent_by(&work, &latest, ES_UNTOLD, 3600, 5700).gpu_ns == 600);
    /* Of its own 60, 20 were submitted before the latest marker: how long they took is not known. */
    work = (struct es_work){.cost_ns = 60, .opened_ns = 1900, .before_ns = 880, .mark_ns = 940};
    CHECK(!es_spent_by(&work, &latest, ES_UNTOLD, 40, 5700).teaches);
}

/* A device that is always busy, any number of threads whose batches are opened and closed at any time: what is counted is
 * the time that it took. */
static void what_had_not_run_when_a_batch_was_opened_is_counted_with_its_time_and_not_again(void) {
    const struct es_counted latest = {.ended_ns = 2000, .mark_ns = 700};
    /* Another thread has submitted 200 since the latest end, of which half had run when this one was opened. */
    struct es_work work = {.cost_ns = 100, .opened_ns = 5000, .before_ns = 900, .ahead_ns = 100, .mark_ns = 1000};
    struct es_spent spent = es_spent_by(&work, &latest, ES_UNTOLD, 3400, 5600);

    /* In its 400 ran the other half and its own 100, which had half of that; what had run before counts its estimate. */
    CHECK(spent.gpu_ns == 500 && spent.teaches && !spent.whole && spent.own_ns == 200);
    /* Where nobody knows its time, each counts its estimate once. */
    CHECK(es_spent_by(&work, &latest, ES_UNTOLD, ES_UNTOLD, 5600).gpu_ns == 300);
    /* What was counted up to the latest end is not what ran in its time. */
    work.ahead_ns = 800;
    spent = es_spent_by(&work, &latest, ES_UNTOLD, 3400, 5600);
    CHECK(spent.gpu_ns == 400 && spent.own_ns == 133);
}

static void what_a_busy_device_ran_is_counted_to_the_nanosecond(void) {
    enum { THREADS = 5 };
    struct es_counted latest = {.ended_ns = 1000, .mark_ns = 0};
    struct es_work open[THREADS] = {{0}};
    uint64_t submitted_ns = 0, ran_ns = 0, counted_ns = 0;
    uint32_t state = 1;

    for (int i = 0; i < 100000; i++) {
        const uint64_t cost_ns = 500 + ((state = state * 1664525 + 1013904223) >> 20);
        struct es_work *work = &open[(state = state * 1664525 + 1013904223) % THREADS];

        if (work->cost_ns == 0)
            *work = (struct es_work){.opened_ns = 1000 + ran_ns, .before_ns = submitted_ns};
        work->cost_ns += cost_ns;
        submitted_ns += cost_ns;
        if ((state >> 8) % 4 != 0)
            continue;
        /* It ends when all has run that was submitted: one and a half times what was estimated. */
        work->mark_ns = submitted_ns;
        {
            const uint64_t end_ns = submitted_ns + submitted_ns / 2;
            const struct es_spent spent = es_spent_by(work, &latest, ES_UNTOLD, (int64_t)(end_ns - ran_ns), 1000 + end_ns);

            counted_ns += spent.gpu_ns;
            CHECK(!spent.teaches || (spent.own_ns >= work->cost_ns && spent.own_ns <= 2 * work->cost_ns));
            latest = (struct es_counted){.ended_ns = 1000 + end_ns, .mark_ns = submitted_ns};
            ran_ns = end_ns;
        }
        work->cost_ns = 0;
    }
    CHECK(counted_ns == ran_ns);
}

static void blocks_are_found_again(void) {
    static unsigned char there[4096];
    struct es_blocks blocks = {0};
    uint32_t state = 7;
    size_t count = 0, place = 0;

    CHECK(es_blocks_remove(&blocks, 5).address == 0);
    CHECK(!es_blocks_add(&blocks, (struct es_block){0}));
    for (int i = 0; i < 100000; i++) {
        const uint32_t which = (state = state * 1664525 + 1013904223) >> 20;
        const uint64_t address = ((uint64_t)which + 1) << 9;

        if (there[which]) {
            const struct es_block block = es_blocks_remove(&blocks, address);

            CHECK(block.address == address && block.bytes == which);
            count--;
        } else {
            CHECK(es_blocks_remove(&blocks, address).address == 0);
            CHECK(es_blocks_add(&blocks, (struct es_block){address, which, 0, 1, which % 2 ? &blocks : NULL}));
            count++;
        }
        there[which] = !there[which];
        CHECK(blocks.count == count);
    }
    for (size_t which = 1; which < sizeof(there); which += 2)
        count -= there[which];
    while (es_blocks_remove_owned(&blocks, &blocks, &place).address != 0)
        ;
    CHECK(blocks.count == count);
    es_blocks_clear(&blocks);
    CHECK(blocks.count == 0);
}

static int parsed(const char *text, struct es_config *config) {
    const size_t bytes = strlen(text);
    char *copy = malloc(bytes + 1);
    int odd;

    memcpy(copy, text, bytes); /* and no zero at the end */
    odd = es_config_parse(copy, bytes, config);
    free(copy);
    return odd;
}

static void configs_are_read(void) {
    struct es_config config;

    CHECK(parsed("", &config) == 0 && config.failure_policy == ES_FAIL_OPEN && config.grace_ms == ES_CONFIG_GRACE_MS);
    CHECK(parsed("failure-policy=closed\n grace-ms = 250 \r\nmemory-cap-bytes=1073741824", &config) == 0);
    CHECK(config.failure_policy == ES_FAIL_CLOSED && config.grace_ms == 250 && config.memory_cap_bytes == 1 << 30);
    CHECK(parsed("failure-policy=perhaps\ngrace-ms=-1\nmemory-cap-bytes=99999999999999999999\nx\n=\n\n", &config) == 5);
    CHECK(config.failure_policy == ES_FAIL_OPEN && config.memory_cap_bytes == 0);
}

static struct es_lock lock;
static long counter;

static void *count_up(void *unused) {
    (void)unused;
    for (int i = 0; i < 100000; i++) {
        es_lock_take(&lock);
        counter++;
        es_lock_give(&lock);
    }
    return NULL;
}

static void a_lock_excludes(void) {
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, count_up, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK(counter == 400000);
}

/* Turns go on beyond the least until the manager has had some as well, which may not run at first. */
enum { ALLOWED = 1000, TURNS = 200000, MOST_TURNS = 1000 * TURNS };

static struct es_hint_page hints;
static uint64_t taken_back;
static int clients_at_it = 2;

/* A thread of a client takes and puts back; what it has taken is never more than there ever was. */
static void *take_and_put(void *unused) {
    (void)unused;
    for (int i = 0; i < TURNS || (i < MOST_TURNS && __atomic_load_n(&taken_back, __ATOMIC_RELAXED) == 0); i++) {
        const uint64_t bytes = (uint64_t)(i % 7);

        if (es_allowance_take(&hints, 1, bytes))
            es_allowance_put(&hints, 1, bytes);
    }
    __atomic_fetch_sub(&clients_at_it, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* The manager takes all that is there, and allows it again. */
static void *take_back_and_allow(void *unused) {
    (void)unused;
    while (__atomic_load_n(&clients_at_it, __ATOMIC_ACQUIRE) != 0) {
        const uint64_t got = es_allowance_take_back(&hints, 1, ALLOWED);

        CHECK(got <= ALLOWED);
        if (got != 0)
            __atomic_store_n(&taken_back, taken_back + 1, __ATOMIC_RELAXED);
        es_allowance_put(&hints, 1, got);
    }
    return NULL;
}

static void an_allowance_is_neither_lost_nor_doubled(void) {
    pthread_t threads[3];

    CHECK(!es_allowance_take(&hints, 1, 1));
    CHECK(es_allowance_take_back(&hints, 1, ALLOWED) == 0);
    es_allowance_put(&hints, 1, 2 * ALLOWED);
    CHECK(es_allowance_take_back(&hints, 1, ALLOWED) == ALLOWED);
    CHECK(es_allowance_standing(&hints, 1) == ALLOWED);
    CHECK(!es_allowance_take(&hints, 1, ALLOWED + 1));
    pthread_create(&threads[0], NULL, take_and_put, NULL);
    pthread_create(&threads[1], NULL, take_and_put, NULL);
    pthread_create(&threads[2], NULL, take_back_and_allow, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    CHECK(taken_back != 0);
    CHECK(es_allowance_standing(&hints, 1) == ALLOWED);
    CHECK(es_allowance_standing(&hints, 0) == 0 && es_allowance_standing(&hints, 2) == 0);
}

/* Work ends so late after it was submitted, each with `beside` queued in other streams and 100 us ahead of its own end. */
static void judge(struct es_overlap *overlap, int times, uint64_t beside_us, uint64_t took_us) {
    for (int i = 0; i < times; i++)
        es_overlap_judge(overlap, (struct es_queued){beside_us * 1000, 100000}, took_us * 1000);
}

static void overlap_is_seen_by_how_soon_work_ends(void) {
    struct es_overlap overlap = {0};

    /* As streams that add up let it end, however often. */
    judge(&overlap, 1000, 1000, 1100);
    CHECK(!overlap.seen && es_overlap_together_ns(&overlap, 5000) == 5000);
    /* One that ends at once is one that was estimated wrongly, perhaps. */
    judge(&overlap, 1, 1000, 100);
    judge(&overlap, 20, 1000, 1100);
    CHECK(!overlap.seen);
    judge(&overlap, 20, 1000, 100);
    CHECK(overlap.seen);
    /* … until they add up again. */
    judge(&overlap, 1000, 1000, 1000);
    CHECK(!overlap.seen);
    /* Estimates that are far too low tell nothing for long. */
    judge(&overlap, 1, 1000, 100000000);
    judge(&overlap, 30, 1000, 100);
    CHECK(overlap.seen);
    /* Too little beside it says nothing, however often, … */
    overlap = (struct es_overlap){0};
    judge(&overlap, 1000, 249, 100);
    CHECK(!overlap.seen);
    judge(&overlap, 100, 250, 100);
    CHECK(overlap.seen);
    /* … and too few are too little for a verdict, however much. */
    overlap = (struct es_overlap){0};
    judge(&overlap, 3, 100000, 100);
    CHECK(!overlap.seen);
    judge(&overlap, 1, 100000, 100);
    CHECK(overlap.seen);
    /* It is looked for anew where estimates were wrong. */
    es_overlap_forget(&overlap);
    CHECK(!overlap.seen && es_overlap_together_ns(&overlap, 5000) == 5000);
    judge(&overlap, 3, 100000, 100);
    CHECK(!overlap.seen);
}

/* Of some thousands of multiples of the golden ratio, no part of the circle holds more or fewer by so many than by its length:
 * their discrepancy grows with the logarithm of their number (Kuipers and Niederreiter, Uniform Distribution of Sequences). */
enum { EVEN = 5 };

/* Of so many bursts that begin so far apart, how many are to be timed. */
static int chosen(struct es_bursts *bursts, int many, uint64_t *now_ns, uint64_t apart_ns) {
    int count = 0;

    for (int i = 0; i < many; i++) {
        *now_ns += apart_ns;
        count += es_bursts_choose(bursts, *now_ns);
    }
    return count;
}

static void timing_bursts_takes_a_small_part_of_the_time(void) {
    struct es_bursts bursts = {0};
    uint64_t now_ns = 1;

    /* One in eight, also where nothing is known, and where that costs next to nothing. */
    CHECK(es_bursts_choose(&bursts, now_ns));
    CHECK(abs(chosen(&bursts, 8000, &now_ns, 30000) - 1000) < EVEN);
    es_bursts_recorded(&bursts, 500);
    CHECK(abs(chosen(&bursts, 8000, &now_ns, 30000) - 1000) < EVEN);
    /* 16 us each of what is 32 us apart: one in 32; of those further apart more, and a long pause counts as a short one. */
    bursts.record_ns = 4000;
    (void)chosen(&bursts, 1000, &now_ns, 32000);
    CHECK(abs(chosen(&bursts, 32000, &now_ns, 32000) - 1000) < EVEN);
    (void)chosen(&bursts, 1000, &now_ns, 64000);
    CHECK(abs(chosen(&bursts, 16000, &now_ns, 64000) - 1000) < EVEN);
    now_ns += UINT64_C(1000000000000);
    (void)chosen(&bursts, 1, &now_ns, 64000);
    CHECK(bursts.apart_ns < 250000);
    /* … but one in 64, however dear it is. */
    bursts.record_ns = 1000000;
    (void)chosen(&bursts, 1000, &now_ns, 32000);
    CHECK(abs(chosen(&bursts, 64000, &now_ns, 32000) - 1000) < EVEN);
    /* A record that took long once, as its thread was put aside, makes little difference. */
    bursts.record_ns = 0;
    es_bursts_recorded(&bursts, 1000);
    es_bursts_recorded(&bursts, 10000000);
    CHECK(bursts.record_ns == 1125);
    es_bursts_recorded(&bursts, 900);
    CHECK(bursts.record_ns == 900);
}

static void what_is_queued_takes_as_long_as_such_work_took_together(void) {
    struct es_overlap overlap = {0};

    es_overlap_count(&overlap, 1000000, 1);
    CHECK(es_overlap_together_ns(&overlap, 8000) == 8000);
    judge(&overlap, 20, 1000, 100);
    CHECK(overlap.seen && es_overlap_together_ns(&overlap, 8000) == 8000);
    for (int i = 0; i < 1000; i++)
        es_overlap_count(&overlap, 1000000, 250000);
    CHECK(es_overlap_together_ns(&overlap, 8000) > 1990 && es_overlap_together_ns(&overlap, 8000) < 2010);
    for (int i = 0; i < 1000; i++)
        es_overlap_count(&overlap, 1000000, 0);
    CHECK(es_overlap_together_ns(&overlap, 8000) == 500);
    /* What took longer than its estimate is not said to add up to more. */
    for (int i = 0; i < 1000; i++)
        es_overlap_count(&overlap, 1000000, 3000000);
    CHECK(es_overlap_together_ns(&overlap, 8000) == 8000);
}

static void gaps_are_what_passes_between_ends_and_is_no_gpu_time(void) {
    struct es_gaps gaps = {0};

    /* Where others' work may have run before, the first end tells nothing. */
    es_gaps_begin(&gaps, 0);
    CHECK(es_gaps_end(&gaps, 5000, 1000, false) == 0);
    CHECK(es_gaps_end(&gaps, 8000, 1000, false) == 2000);
    es_gaps_begin(&gaps, 20000);
    CHECK(es_gaps_end(&gaps, 23000, 1000, false) == 2000);
    /* Of two threads: what ran before the first end is counted at the second. */
    CHECK(es_gaps_end(&gaps, 24000, 1000, false) == 0);
    CHECK(es_gaps_end(&gaps, 24500, 1500, false) == 0);
    CHECK(es_gaps_end(&gaps, 26000, 100, false) == 400);
    /* One that ended before the latest did. */
    CHECK(es_gaps_end(&gaps, 25000, 300, false) == 0);
    CHECK(es_gaps_end(&gaps, 27000, 100, false) == 600);
    /* What ran in a turn and was seen to have ended when it was over was told as a gap in it. */
    CHECK(es_gaps_end(&gaps, 29000, 500, false) == 1500 && es_gaps_end(&gaps, 29100, 1600, false) == 0);
    es_gaps_begin(&gaps, 50000);
    CHECK(es_gaps_end(&gaps, 53000, 1000, false) == 500);
    /* Nor do costs that are too high hide gaps for ever. */
    CHECK(es_gaps_end(&gaps, 53000, 1000000000, false) == 0 && gaps.ahead_ns == 20000000);
}

static void beside_others_gaps_are_those_that_were_seen_lately(void) {
    struct es_gaps gaps = {0};
    uint64_t now_ns = 1000;

    CHECK(es_gaps_end(&gaps, 1000, 1000, true) == 0);
    /* Time in which no GPU time was counted says nothing of any. */
    es_gaps_begin(&gaps, now_ns);
    es_gaps_end(&gaps, now_ns += 1000, 0, false);
    CHECK(es_gaps_end(&gaps, now_ns, 1000, true) == 0);
    es_gaps_begin(&gaps, now_ns);
    for (int i = 0; i < 100000; i++)
        es_gaps_end(&gaps, now_ns += 40000, 10000, false);
    CHECK(es_gaps_end(&gaps, now_ns += 1000, 1000, true) == 3000);
    /* What passes then says nothing, nor does the first end after it. */
    CHECK(es_gaps_end(&gaps, now_ns += 900000, 1000, true) == 3000);
    CHECK(es_gaps_end(&gaps, now_ns += 900000, 1000, false) == 3000);
    for (int i = 0; i < 100000; i++)
        es_gaps_end(&gaps, now_ns += i % 2 == 0 ? 30000 : 10000, 10000, false);
    CHECK(es_gaps_end(&gaps, now_ns, 1000, true) > 990 && es_gaps_end(&gaps, now_ns, 1000, true) < 1010);
}

static void an_estimate_that_is_far_too_low_does_not_last(void) {
    static struct es_costs table;
    struct es_cost *entry = es_costs_find(&table, 9);
    struct es_counted latest = {.ended_ns = 10000, .mark_ns = 400};
    /* Of 100, 50 had been submitted when the latest end was marked. */
    struct es_work work = {.cost_ns = 100, .opened_ns = 5000, .before_ns = 350, .mark_ns = 450};
    struct es_spent spent = es_spent_by(&work, &latest, ES_UNTOLD, 6000, 16000);

    CHECK(spent.teaches && spent.gpu_ns == 6000 && spent.own_ns == 6000);
    /* Of one that took no longer than it should have, what had run before is not known. */
    CHECK(!es_spent_by(&work, &latest, ES_UNTOLD, 95, 16000).teaches);
    learn(&table, 9, 600);
    learn(&table, 9, 8000);
    CHECK(entry->ns == 8000);
    for (int i = 0; i < 20; i++)
        learn(&table, 9, 8000);
    learn(&table, 9, 80000);
    CHECK(entry->ns == 17000);
}

static void beside_others_a_function_takes_no_longer_than_times_that_agree(void) {
    static struct es_costs table;
    const struct es_cost *entry = es_costs_find(&table, 9);

    learn(&table, 9, 1200000);
    for (int i = 0; i < ES_COSTS_WEIGHT - 1; i++)
        CHECK(!es_costs_note_beside(&table, 9, 1000000 + i % 2 * 500) && es_costs_usual_ns(entry, true) == 1200000);
    CHECK(es_costs_note_beside(&table, 9, 1000000) && es_costs_usual_ns(entry, true) == 1000000);
    CHECK(es_costs_usual_ns(entry, false) == 1200000);
    /* It is said once. */
    CHECK(!es_costs_note_beside(&table, 9, 1000000));
    /* One in which others ran as well says little, and several that it takes now so long, now so long. */
    CHECK(!es_costs_note_beside(&table, 9, 3000000) && es_costs_usual_ns(entry, true) == 1200000);
    for (int i = 0; i < 1000; i++)
        CHECK(!es_costs_note_beside(&table, 9, i % 5 == 4 ? 3000000 : 1000000) || i < ES_COSTS_WEIGHT);
    CHECK(es_costs_usual_ns(entry, true) == 1200000);
    /* A shorter one begins anew, and none makes more of what was learned. */
    for (int i = 0; i < ES_COSTS_BESIDES; i++)
        (void)es_costs_note_beside(&table, 9, 900000);
    CHECK(es_costs_usual_ns(entry, true) == 900000);
    learn(&table, 10, 1000000);
    for (int i = 0; i < ES_COSTS_BESIDES; i++)
        CHECK(!es_costs_note_beside(&table, 10, 1200000));
    CHECK(es_costs_usual_ns(es_costs_find(&table, 10), true) == 1000000);
}

static void the_most_that_a_launch_can_take_is_what_its_stream_was_kept_for(void) {
    static struct es_costs table;
    struct es_counted latest = {.ended_ns = 10000, .mark_ns = 400};
    struct es_work work = {.cost_ns = 100, .opened_ns = 5000, .before_ns = 300, .mark_ns = 500};

    CHECK(es_costs_find(&table, 9)->most_ns == 0);
    es_costs_bound(&table, 9, 8000);
    es_costs_bound(&table, 9, 1000);
    CHECK(es_costs_find(&table, 9)->most_ns == 1000);
    es_costs_bound(&table, 9, 1800);
    CHECK(es_costs_find(&table, 9)->most_ns == 1100);
    /* Its stream came to its marker before the latest end, though that is seen only now. */
    CHECK(es_spent_by(&work, &latest, ES_UNTOLD, -3000, 16000).stream_ended_ns == 7000);
    CHECK(es_spent_by(&work, &latest, ES_UNTOLD, 3000, 16000).stream_ended_ns == 13002);
}

int main(void) {
    records_are_checked();
    fields_are_checked();
    words_carry_what_was_put_in();
    costs_are_learnt();
    exact_times_take_the_place_of_others();
    what_is_assumed_of_a_function_is_exact_until_that_is_found_to_be_wrong();
    an_exact_time_that_no_other_bears_out_gives_way_to_a_shorter_one();
    one_that_is_due_and_cannot_be_timed_keeps_nobody_waiting();
    where_exact_times_are_unlike_each_other_all_times_count();
    exact_times_that_are_found_wrong_again_and_again_are_given_up();
    of_exact_times_that_others_may_have_made_longer_the_shortest_counts();
    beside_others_the_shortest_time_counts_until_one_is_seen_without();
    the_first_launches_of_a_short_function_ask_until_it_was_timed_exactly();
    equal_times_that_others_made_longer_are_not_taken_for_exact_for_long();
    a_gap_in_an_exact_time_does_not_count_beside_others();
    a_function_that_is_not_known_or_due_again_has_no_cost();
    of_functions_that_are_due_one_is_timed_alone_now_and_then();
    an_entry_that_became_another_functions_tells_nothing();
    a_cost_that_is_looked_up_without_a_lock_is_of_that_function();
    each_of_many_functions_in_turn_is_looked_up_once();
    threads_look_each_function_up_once();
    a_handle_that_is_used_anew_costs_what_was_learnt_since();
    passes_are_of_one_stream_and_one_batch();
    a_call_is_compared_with_its_like();
    gaps_are_what_passes_between_ends_and_is_no_gpu_time();
    beside_others_gaps_are_those_that_were_seen_lately();
    an_estimate_that_is_far_too_low_does_not_last();
    beside_others_a_function_takes_no_longer_than_times_that_agree();
    the_most_that_a_launch_can_take_is_what_its_stream_was_kept_for();
    overlap_is_seen_by_how_soon_work_ends();
    timing_bursts_takes_a_small_part_of_the_time();
    what_is_queued_takes_as_long_as_such_work_took_together();
    a_timeline_counts_down();
    a_timeline_credits_no_time_to_what_came_after_it();
    a_timeline_counts_a_sleeping_threads_work_once();
    a_batch_alone_counts_what_its_markers_say();
    a_start_tells_as_much_as_is_sure_of_it();
    an_end_that_is_seen_late_is_taken_for_later_by_no_more_than_clocks_drift();
    a_burst_that_the_host_could_not_keep_up_with_counts_its_estimate();
    what_takes_as_long_as_is_known_counts_that_however_long_the_host_took();
    what_ran_after_its_marker_was_there_is_told_however_short_it_should_have_been();
    of_a_batch_that_was_open_when_the_marker_before_it_was_recorded_nothing_is_learned();
    a_marker_behind_others_work_makes_no_exact_time_longer();
    a_launch_between_two_markers_that_were_there_before_it_ran_tells_its_time();
    batches_of_two_threads_are_counted_once();
    beside_others_a_batch_counts_its_estimate_once();
    beside_others_no_more_is_counted_than_went_by_and_nothing_is_lost();
    of_what_ran_between_two_markers_only_what_was_submitted_there_counts();
    what_had_not_run_when_a_batch_was_opened_is_counted_with_its_time_and_not_again();
    what_a_busy_device_ran_is_counted_to_the_nanosecond();
    blocks_are_found_again();
    configs_are_read();
    a_lock_excludes();
    an_allowance_is_neither_lost_nor_doubled();
    a_spell_is_never_counted_twice();
    return failures != 0;
}
