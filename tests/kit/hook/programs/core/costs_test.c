/* How long each function takes, and which times are exact. */
#include "core.h"

#include "core/times/costs.h"
#include "core/times/spent.h"

static struct es_costs costs;

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
    /* It takes so long now that a host's gaps are no part of that to speak of: other times do as well. */
    for (int i = 0; i < 100; i++)
        es_costs_learn_exact(&table, 7, 2 * ES_COSTS_EXACT_MOST_NS, true);
    CHECK(entry->exact == 0 && !es_costs_sure(entry) && !es_costs_vague(&table, entry));
}

static void of_a_long_function_exact_times_are_its_own_and_alike(void) {
    static struct es_costs table;
    struct es_cost *entry = es_costs_find(&table, 7);

    learn(&table, 7, 4 * ES_COSTS_SHORT_NS);
    /* Others may have been in it. */
    es_costs_learn_exact(&table, 7, 4 * ES_COSTS_SHORT_NS - 1000, false);
    CHECK(entry->exact == 0 && entry->ns == 4 * ES_COSTS_SHORT_NS);
    es_costs_learn_exact(&table, 7, 4 * ES_COSTS_SHORT_NS - 1000, true);
    CHECK(entry->exact == 1 && entry->ns == 4 * ES_COSTS_SHORT_NS - 1000);
    /* A change of contexts is no more in it than in a short one's. */
    es_costs_learn_exact(&table, 7, ES_COSTS_SHORT_NS, true);
    CHECK(entry->exact == 1 && entry->ns == ES_COSTS_SHORT_NS && !entry->varies);
    /* It takes now so long, now so long: all of its times count, and none for more. */
    learn(&table, 8, 100 * ES_COSTS_SHORT_NS);
    entry = es_costs_find(&table, 8);
    es_costs_learn_exact(&table, 8, 5000, true);
    CHECK(entry->exact == 0 && !entry->varies && entry->ns == (100 * ES_COSTS_SHORT_NS + 5000) / 2);
}

static void exact_times_far_from_the_mean_count_where_two_in_succession_agree(void) {
    static struct es_costs table;
    struct es_cost *entry = es_costs_find(&table, 7);

    /* Another thread's launch was in the first times. */
    learn(&table, 7, 40 * ES_COSTS_SHORT_NS);
    es_costs_learn_exact(&table, 7, 5000, true);
    es_costs_learn_exact(&table, 7, 9000, true);
    CHECK(entry->exact == 0 && entry->ns > 10 * ES_COSTS_SHORT_NS);
    es_costs_learn_exact(&table, 7, 9010, true);
    CHECK(entry->exact == 1 && entry->ns == 9010 && !entry->varies);
    /* Nor does one of a function that is longer than it seemed. */
    entry = es_costs_find(&table, 8);
    for (int i = 0; i < ES_COSTS_WEIGHT; i++)
        learn(&table, 8, ES_COSTS_EXACT_MOST_NS / 2);
    es_costs_learn_exact(&table, 8, 2 * ES_COSTS_EXACT_MOST_NS, true);
    CHECK(entry->ns < ES_COSTS_EXACT_MOST_NS);
    es_costs_learn_exact(&table, 8, 2 * ES_COSTS_EXACT_MOST_NS, true);
    CHECK(entry->exact == 0 && entry->ns == 2 * ES_COSTS_EXACT_MOST_NS);
}

static void one_that_is_long_is_timed_once_more_as_soon_as_one_that_was_never_timed_exactly(void) {
    static struct es_costs table;
    struct es_cost *entry = es_costs_find(&table, 7);

    learn(&table, 7, 4 * ES_COSTS_SHORT_NS);
    es_costs_learn_exact(&table, 7, 4 * ES_COSTS_SHORT_NS, true);
    es_costs_learn_exact(&table, 7, 4 * ES_COSTS_SHORT_NS, true);
    CHECK(es_costs_sure(entry) && !es_costs_vague(&table, entry));
    for (int i = 0; i <= ES_COSTS_STALE; i++) {
        CHECK(!es_costs_vague(&table, entry));
        es_costs_count(&table, false);
        es_costs_miss(&table, 7, 1);
    }
    CHECK(es_costs_vague(&table, entry));
}

/* As if the device took longer again and again than exact times say. */
static void doubt(struct es_costs *table) {
    for (int i = 0; i < ES_COSTS_DOUBTS / ES_COSTS_DOUBT; i++)
        es_costs_judge(table, true);
}

static void what_is_assumed_of_a_function_is_exact_until_that_is_found_to_be_wrong(void) {
    static struct es_costs table;
    struct es_cost *entry = es_costs_find(&table, 7);

    es_costs_assume(entry, 2000);
    CHECK(es_costs_sure(entry) && !es_costs_vague(&table, entry) && es_costs_known_ns(&table, entry, 7, true) == 2000);
    doubt(&table);
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

static void exact_times_that_are_found_wrong_are_taken_anew_and_again_and_again_are_given_up(void) {
    static struct es_costs table;

    for (int anew = 0; anew <= ES_COSTS_ANEW; anew++) {
        for (uint64_t key = 1; key <= 2; key++) {
            learn(&table, key, 2000);
            CHECK(es_costs_vague(&table, es_costs_find(&table, key)));
            es_costs_learn_exact(&table, key, 2000, true);
            es_costs_learn_exact(&table, key, 2000, true);
            CHECK(es_costs_sure(es_costs_find(&table, key)) && !es_costs_vague(&table, es_costs_find(&table, key)));
        }
        /* Now and then does not count. */
        for (int i = 0; i < 1000; i++)
            es_costs_judge(&table, i % (2 * ES_COSTS_DOUBT) == 0);
        CHECK(es_costs_sure(es_costs_find(&table, 1)));
        doubt(&table);
        CHECK(!es_costs_sure(es_costs_find(&table, 1)) && !es_costs_sure(es_costs_find(&table, 2)) && table.doubts == 0);
    }
    CHECK(!es_costs_vague(&table, es_costs_find(&table, 1)) && es_costs_find(&table, 2)->varies);
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

void test_costs(void) {
    costs_are_learnt();
    exact_times_take_the_place_of_others();
    of_a_long_function_exact_times_are_its_own_and_alike();
    exact_times_far_from_the_mean_count_where_two_in_succession_agree();
    one_that_is_long_is_timed_once_more_as_soon_as_one_that_was_never_timed_exactly();
    what_is_assumed_of_a_function_is_exact_until_that_is_found_to_be_wrong();
    an_exact_time_that_no_other_bears_out_gives_way_to_a_shorter_one();
    where_exact_times_are_unlike_each_other_all_times_count();
    exact_times_that_are_found_wrong_are_taken_anew_and_again_and_again_are_given_up();
    of_exact_times_that_others_may_have_made_longer_the_shortest_counts();
    the_most_that_a_launch_can_take_is_what_its_stream_was_kept_for();
}
