/* When a function is timed, and what is known of it while others run beside it. */
#include "core.h"

#include "core/times/costs.h"
#include "core/times/spent.h"

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
        es_costs_ask(entry);
    CHECK(known_ns(&table, 7) == 0);
    es_costs_learn_exact(&table, 7, 2000, true);
    es_costs_ask(entry);
    CHECK(known_ns(&table, 7) == 0);
    es_costs_learn_exact(&table, 7, 2000, true);
    CHECK(known_ns(&table, 7) == 2000);
    /* Where it cannot be done they do not ask without end. */
    es_costs_learn(&table, 8, 3000);
    entry = es_costs_find(&table, 8);
    for (int i = 0; i < ES_COSTS_ASKS; i++) {
        CHECK(known_ns(&table, 8) == 0);
        es_costs_ask(entry);
    }
    CHECK(known_ns(&table, 8) == 3000);
    /* A very long one need not be timed like that. */
    es_costs_learn(&table, 9, ES_COSTS_EXACT_MOST_NS + 25000);
    CHECK(known_ns(&table, 9) == ES_COSTS_EXACT_MOST_NS + 25000);
}

static void equal_times_that_others_made_longer_are_not_taken_for_exact_for_long(void) {
    static struct es_costs table;
    struct es_cost *entry = es_costs_find(&table, 7);

    learn(&table, 7, 20000);
    es_costs_learn_exact(&table, 7, 10000, false);
    es_costs_learn_exact(&table, 7, 10000, false);
    CHECK(es_costs_sure(entry) && es_costs_vague(&table, entry));
    CHECK(!es_costs_disturbed(entry));
    entry->tries = ES_COSTS_EXACT;
    CHECK(es_costs_disturbed(entry));
    entry->tries = ES_COSTS_TRIES;
    CHECK(!es_costs_vague(&table, entry) && !es_costs_disturbed(entry));
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
    learn(&table, 9, 600);
    CHECK(entry->ns == 600);
    /* What is longer by itself had something else in it; two one after the other had not. */
    learn(&table, 9, 8100);
    learn(&table, 9, 8000);
    CHECK(entry->ns == 8000);
    for (int i = 0; i < 20; i++)
        learn(&table, 9, 8000);
    learn(&table, 9, 80000);
    CHECK(entry->ns == 17000);
}

static void a_function_asks_again_where_it_is_found_to_be_short(void) {
    static struct es_costs table;
    const struct es_cost *entry = es_costs_find(&table, 9);

    es_costs_learn(&table, 9, ES_COSTS_EXACT_MOST_NS + 1000);
    CHECK(entry->asks == 0);
    es_costs_learn(&table, 9, 1000);
    CHECK(entry->ns < ES_COSTS_EXACT_MOST_NS && entry->asks == ES_COSTS_ASKS);
    es_costs_ask(es_costs_find(&table, 9));
    es_costs_learn(&table, 9, 1000);
    CHECK(entry->asks == ES_COSTS_ASKS - 1);
}

void test_costs_asked(void) {
    beside_others_the_shortest_time_counts_until_one_is_seen_without();
    the_first_launches_of_a_short_function_ask_until_it_was_timed_exactly();
    equal_times_that_others_made_longer_are_not_taken_for_exact_for_long();
    a_gap_in_an_exact_time_does_not_count_beside_others();
    a_function_that_is_not_known_or_due_again_has_no_cost();
    of_functions_that_are_due_one_is_timed_alone_now_and_then();
    one_that_is_due_and_cannot_be_timed_keeps_nobody_waiting();
    a_call_is_compared_with_its_like();
    an_estimate_that_is_far_too_low_does_not_last();
    a_function_asks_again_where_it_is_found_to_be_short();
}
