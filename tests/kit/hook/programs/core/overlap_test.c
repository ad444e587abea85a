/* Engines beside each other, bursts that are timed, and gaps. */
#include "core.h"

#include <stdlib.h>

#include "core/times/bursts.h"
#include "core/times/gaps.h"
#include "core/times/overlap.h"

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

void test_overlap(void) {
    gaps_are_what_passes_between_ends_and_is_no_gpu_time();
    beside_others_gaps_are_those_that_were_seen_lately();
    overlap_is_seen_by_how_soon_work_ends();
    timing_bursts_takes_a_small_part_of_the_time();
    what_is_queued_takes_as_long_as_such_work_took_together();
}
