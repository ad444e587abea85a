/* What is queued on the device, and until when. */
#include "core.h"

#include "core/times/timeline.h"

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

void test_timeline(void) {
    a_timeline_counts_down();
    a_timeline_credits_no_time_to_what_came_after_it();
    a_timeline_counts_a_sleeping_threads_work_once();
}
