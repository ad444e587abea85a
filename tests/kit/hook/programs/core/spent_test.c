/* How much GPU time a batch took, by its own markers. */
#include "core.h"

#include "core/times/spent.h"

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

static void a_batch_that_nobody_waited_for_and_that_ended_soon_after_its_marker_was_the_hosts(void) {
    /* Sixteen launches of 100 us each 160 us: the last of them ended 40 us after the marker. */
    const struct es_counted latest = {.ended_ns = 900000, .mark_ns = 700, .grant = 1};
    struct es_work work = {.cost_ns = 1600000,
                           .opened_ns = 1000000,
                           .before_ns = 700,
                           .mark_ns = 1600700,
                           .launches = 16,
                           .grant = 1,
                           .alone_ns = 3500000,
                           .marked_ns = 3500000,
                           .few_ns = 200000};
    struct es_spent spent = es_spent_by(&work, &latest, 2540000, 2640000, 3600000);

    CHECK(spent.gpu_ns == 1600000 && !spent.teaches && !spent.apart);
    /* Their times are exact: it took no longer than those say, either. */
    work.known_ns = 1600000;
    CHECK(!es_spent_by(&work, &latest, 2540000, 2640000, 3600000).longer);
    /* More was queued than that: the device ran all the time. */
    work.few_ns = 20000;
    work.known_ns = 0;
    spent = es_spent_by(&work, &latest, 2540000, 2640000, 3600000);
    CHECK(spent.gpu_ns == 2540000 && spent.teaches);
}

static void of_a_few_launches_that_had_ended_as_they_were_marked_the_gaps_are_the_hosts(void) {
    /* Four launches of 50 us, each 300 us: the last of them ended before the marker. */
    const struct es_counted latest = {.ended_ns = 900000, .mark_ns = 700, .grant = 1};
    struct es_work work = {.cost_ns = 200000,
                           .opened_ns = 1000000,
                           .before_ns = 700,
                           .mark_ns = 200700,
                           .launches = 4,
                           .grant = 1,
                           .marked_ns = 2200000,
                           .known_ns = 200000,
                           .unwaited = true,
                           .reached = true};
    struct es_spent spent = es_spent_by(&work, &latest, 1200000, 1300000, 2300000);

    CHECK(spent.gpu_ns == 200000 && spent.known && !spent.apart && !spent.longer);
    /* It ended later than that: the device took so long. */
    CHECK(es_spent_by(&work, &latest, 1400000, 1500000, 2500000).longer);
    /* Somebody waited for it, which is when it was marked. */
    work.unwaited = false;
    CHECK(es_spent_by(&work, &latest, 1200000, 1300000, 2300000).longer);
}

static void of_exact_times_of_several_threads_what_runs_after_an_end_counts_with_it(void) {
    /* Another thread's launch of 100 had been submitted as well, and ran after this end. */
    const struct es_counted latest = {.ended_ns = 20000, .mark_ns = 700};
    struct es_work work = {.cost_ns = 300, .opened_ns = 15000, .before_ns = 700, .mark_ns = 1100, .known_ns = 400};
    struct es_spent spent = es_spent_by(&work, &latest, ES_UNTOLD, 310, 40000);

    CHECK(spent.gpu_ns == 400 && spent.early_ns == 400);
    work.mark_ns = 1000;
    spent = es_spent_by(&work, &latest, ES_UNTOLD, 290, 40000);
    CHECK(spent.gpu_ns == 290);
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
    /* So much of it its stream may have stood still. */
    work.stalled = true;
    CHECK(es_spent_by(&work, &latest, ES_UNTOLD, 8192000, 9000000).gpu_ns == 8192000 - 250 - 1000 - 4000000 - 2000000);
    work.stalled = false;
    /* An end that may have been seen late says nothing of when the next one was. */
    spent = es_spent_by(&work, &(struct es_counted){.ended_ns = 2000, .mark_ns = 700, .grant = 3}, ES_UNTOLD, 8192000, 9000000);
    CHECK(spent.gpu_ns == 640 && spent.no_sooner_ns == 1000);
    /* Its own start does: that was no sooner than it was opened. Nor did it end after it was seen. */
    CHECK(es_spent_by(&work, &latest, 8193000, 8192000, 9000000).no_sooner_ns == 1000 + 8193000);
    CHECK(es_spent_by(&work, &latest, 8193000, 8192000, 8000000).no_sooner_ns == 8000000);
}

static void one_that_is_measured_from_its_start_alone_ended_so_long_after_its_end_was_marked_at_most(void) {
    const struct es_counted latest = {.ended_ns = 2000, .mark_ns = 700};
    struct es_work work = {
        .cost_ns = 5000, .opened_ns = 10000, .before_ns = 700, .mark_ns = 5700, .marked_ns = 10300, .launches = 1, .anew = true};

    /* However late that is seen. */
    CHECK(es_spent_by(&work, &latest, 5100, ES_UNTOLD, 40000).ended_ns == 10300 + 5100);
    CHECK(es_spent_by(&work, &latest, 5100, ES_UNTOLD, 15200).ended_ns == 15200);
    /* The device may not have come to its start by then: only when it was seen is known. */
    work.anew = false;
    CHECK(es_spent_by(&work, &latest, 5100, ES_UNTOLD, 40000).ended_ns == 40000);
}

static void exact_times_are_doubted_where_the_device_ran_longer_than_all_that_was_submitted_takes(void) {
    const struct es_counted latest = {.ended_ns = 2000, .no_sooner_ns = 2000, .mark_ns = 700, .grant = 3};
    struct es_work work = {.cost_ns = 20000,
                           .opened_ns = 1000,
                           .before_ns = 700,
                           .mark_ns = 20700,
                           .marked_ns = 1900,
                           .launches = 2,
                           .known_ns = 20000,
                           .grant = 3};

    CHECK(!es_spent_by(&work, &latest, ES_UNTOLD, 30000, 40000).longer);
    CHECK(es_spent_by(&work, &latest, ES_UNTOLD, 31000, 40000).longer);
    /* For all that is known the host was slow, until its marker had been recorded, */
    work.marked_ns = 4000;
    CHECK(!es_spent_by(&work, &latest, ES_UNTOLD, 31000, 40000).longer);
    /* or others' work went before it. */
    work.marked_ns = 1900;
    work.grant = 4;
    CHECK(!es_spent_by(&work, &latest, ES_UNTOLD, 31000, 40000).longer);
    /* What had been submitted before that, and is not counted yet, ran as well. */
    work.grant = 3;
    work.before_ns = 2700;
    work.mark_ns = 22700;
    CHECK(!es_spent_by(&work, &latest, ES_UNTOLD, 31000, 40000).longer);
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

void test_spent(void) {
    a_batch_alone_counts_what_its_markers_say();
    a_start_tells_as_much_as_is_sure_of_it();
    an_end_that_is_seen_late_is_taken_for_later_by_no_more_than_clocks_drift();
    a_batch_that_nobody_waited_for_and_that_ended_soon_after_its_marker_was_the_hosts();
    of_a_few_launches_that_had_ended_as_they_were_marked_the_gaps_are_the_hosts();
    of_exact_times_of_several_threads_what_runs_after_an_end_counts_with_it();
    a_burst_that_the_host_could_not_keep_up_with_counts_its_estimate();
    what_takes_as_long_as_is_known_counts_that_however_long_the_host_took();
    what_ran_after_its_marker_was_there_is_told_however_short_it_should_have_been();
    one_that_is_measured_from_its_start_alone_ended_so_long_after_its_end_was_marked_at_most();
    exact_times_are_doubted_where_the_device_ran_longer_than_all_that_was_submitted_takes();
    of_a_batch_that_was_open_when_the_marker_before_it_was_recorded_nothing_is_learned();
}
