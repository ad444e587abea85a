/* How much GPU time batches took that ran in between each other, or beside others. */
#include "core.h"

#include "core/times/spent.h"

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
    /* Others' 5000 are not counted yet, and had run before its start: nobody submitted anything after that. */
    work.mark_ns = 25700;
    spent = es_spent_by(&work, &latest, 2000, 25000, 28000);
    CHECK(spent.teaches && spent.whole && spent.own_ns == 2000);
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
    CHECK(spent.gpu_ns == 300 && !spent.teaches && !spent.apart);
    /* For so long no stream is stopped, and no host takes so long between launches. */
    work.launches = 2;
    spent = es_spent_by(&work, &latest, ES_UNTOLD, 8100000, 9000000);
    CHECK(spent.gpu_ns > 8000000 && spent.teaches && spent.apart && !spent.longer);
    work.left = true;
    CHECK(!es_spent_by(&work, &latest, ES_UNTOLD, 8100000, 9000000).apart);
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

void test_spent_together(void) {
    a_marker_behind_others_work_makes_no_exact_time_longer();
    a_launch_between_two_markers_that_were_there_before_it_ran_tells_its_time();
    batches_of_two_threads_are_counted_once();
    beside_others_a_batch_counts_its_estimate_once();
    beside_others_no_more_is_counted_than_went_by_and_nothing_is_lost();
    of_what_ran_between_two_markers_only_what_was_submitted_there_counts();
    what_had_not_run_when_a_batch_was_opened_is_counted_with_its_time_and_not_again();
    what_a_busy_device_ran_is_counted_to_the_nanosecond();
}
