#include "core/times/spent.h"

#include "core/times/costs.h"

/* Who waits for a marker wakes late, but the markers themselves tell how long one was after the other: so the host's time
 * of an end is the earliest that agrees with what was seen since. It may creep, as elapsed times are rounded to half a
 * microsecond (CUDA Driver API, cuEventElapsedTime), but no more than quartz clocks drift apart, a ten-thousandth: of ends
 * that are seen long after they were nothing else says how late that was. */
enum { CREEP_NS = 250, CREEP_SHIFT = 13, CREEP_MOST_SHIFT = 10, AT_ONCE_NS = 2 * 1000 * 1000 };

/* From a call that records a marker in an idle stream until the device has come to it (2 us and less), amply. */
enum { REACHED_NS = 10 * 1000 };

/* A stream stands still for so long at most (stops.c), amply: what stood behind that and took longer ran for longer. */
enum { STALLED_MOST_NS = 2 * 1000 * 1000 };

/* Exact times are off by less than such a part of them, and so is a measured one. */
enum { SURE_PART = 64 };

/* A start is of use where what it leaves open is so small a part of the time. */
enum { UNSURE_PART = 64 };

/* Some of the longest kernels that people have (20 ms), and no more: so much is counted once of estimates that were too high. */
enum { BESIDE_MOST_NS = 50 * 1000 * 1000 };

static uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t since(uint64_t then, uint64_t now) { return now > then ? now - then : 0; }

static uint64_t launch_ns(const struct es_work *work) { return most(work->cost_ns / most(work->launches, 1), 1); }

/* What is to be counted of `ns` for the work from `mark_ns` on, and of the estimate of what was submitted before that and has
 * not been counted. Where in all that lies what was waited for is not known: it is taken off in proportion. */
static uint64_t uncounted_ns(const struct es_work *work, const struct es_counted *latest, uint64_t mark_ns, uint64_t ns) {
    const uint64_t skipped_ns = since(latest->mark_ns, mark_ns), all_ns = since(latest->mark_ns, work->mark_ns);

    if (all_ns == 0)
        return ns;
    return (uint64_t)((double)(ns + skipped_ns) * (double)since(latest->waited_ns, all_ns) / (double)all_ns);
}

/* When it ended, by the host's time of the latest end, or as it is seen. */
static uint64_t sooner_ns(const struct es_counted *latest, int64_t after_ns, uint64_t now_ns) {
    return after_ns >= 0 && latest->ended_ns + (uint64_t)after_ns < now_ns ? latest->ended_ns + (uint64_t)after_ns : now_ns;
}

/* A thousandth at most: between ends that are close together it must not add up to more. */
static int64_t creep_ns(int64_t after_ns) {
    const int64_t ns = CREEP_NS + (after_ns >> CREEP_SHIFT), most_ns = after_ns >> CREEP_MOST_SHIFT;

    return ns < most_ns ? ns : most_ns;
}

/* One that is measured from its start alone ended no later than so long after its end was marked: it had begun by then. */
static uint64_t end_of(const struct es_work *work, const struct es_counted *latest, int64_t start_ns, int64_t after_ns,
                       uint64_t now_ns) {
    if (work->anew && start_ns > 0)
        return least(work->marked_ns + (uint64_t)start_ns, now_ns);
    return sooner_ns(latest, after_ns < 0 ? after_ns : after_ns + creep_ns(after_ns), now_ns);
}

/* The host's time that it did not end before: its start was recorded when it had been opened, or later; and so with the latest
 * end, as far as clocks agree. */
static uint64_t no_sooner_ns(const struct es_work *work, const struct es_counted *latest, int64_t start_ns, int64_t after_ns,
                             uint64_t ended_ns) {
    uint64_t ns = work->opened_ns;

    if (start_ns > 0)
        ns += (uint64_t)start_ns;
    if (after_ns > 0 && latest->no_sooner_ns != 0)
        ns = most(ns, latest->no_sooner_ns + (uint64_t)(after_ns - creep_ns(after_ns)));
    return ns < ended_ns ? ns : ended_ns;
}

/* For so long at least the device ran what had been submitted: from when its marker had been recorded, and the latest end had
 * come, until its own, less what its stream may have stood still. Not where it may stand behind others' work, as the first of a
 * grant does. */
static uint64_t ran_ns(const struct es_work *work, const struct es_counted *latest, uint64_t no_sooner_ns) {
    const uint64_t ns = since(most(work->marked_ns, latest->ended_ns), no_sooner_ns);
    const bool same_grant = work->grant != 0 && work->grant == latest->grant;

    if (!same_grant || work->left || work->exact || work->beside)
        return 0;
    return work->stalled ? since(STALLED_MOST_NS, ns) : ns;
}

/* The time since its start, if that says when it began. */
static int64_t told_by_start(const struct es_work *work, int64_t start_ns) {
    if (work->unsure_ns == 0 || start_ns - (int64_t)work->behind_ns >= UNSURE_PART * (int64_t)work->unsure_ns)
        return start_ns;
    return ES_UNTOLD;
}

/* All that was submitted in the time is of exact times. A marker that came behind others' work says nothing of its own batch,
 * also where all of that had been counted before. */
static bool is_known(const struct es_work *work, uint64_t span_ns) {
    const uint64_t all_ns = span_ns == 0 && work->left ? most(work->cost_ns, 1) : span_ns;

    return !work->exact && all_ns != 0 && all_ns <= work->known_ns;
}

/* The device ran for longer than all that had been submitted and was not counted takes by its estimates. */
static bool overran(const struct es_work *work, const struct es_counted *latest, uint64_t ran_for_ns) {
    const uint64_t all_ns = since(latest->mark_ns, work->mark_ns);

    return ran_for_ns > all_ns + all_ns / SURE_PART + REACHED_NS;
}

/* Work began, nobody knows when, after the device had stood idle, as the latest end was seen: the time since then is not all the
 * device's. */
static bool began_late(const struct es_work *work, const struct es_counted *latest) {
    return latest->rested && work->opened_ns <= latest->ended_ns && work->marked_ns > latest->ended_ns;
}

/* What was measured, less what had been counted of it by estimates: an earlier marker of another stream does not say that all
 * that was submitted before it had run. */
static uint64_t less_early_ns(uint64_t ns, uint64_t span_ns, uint64_t early_ns) {
    return most(since(early_ns, ns), least(ns, span_ns));
}

uint64_t es_spent_beside(struct es_beside *beside, uint64_t gpu_ns, uint64_t passed_ns, bool paused) {
    const uint64_t all_ns = beside->kept_ns + gpu_ns, free_ns = passed_ns + (paused ? 0 : beside->free_ns);
    const uint64_t spent_ns = least(all_ns, free_ns);

    beside->kept_ns = least(all_ns - spent_ns, BESIDE_MOST_NS);
    beside->free_ns = least(free_ns - spent_ns, BESIDE_MOST_NS);
    return spent_ns;
}

/* The time by which a batch is measured, and what was submitted for it. */
struct stretch {
    bool started;  /* from its start, … */
    bool followed; /* … or from the latest end, where that came later: what ran before that was counted with it */
    bool between;  /* another thread recorded the earlier marker while it was open: its launches stand on both sides of that */
    uint64_t since_ns;      /* the host's time of its begin */
    uint64_t mark_ns;       /* what had been submitted before it, … */
    uint64_t span_ns;       /* … and in it, by other threads, too: that should have run */
    int64_t passed_ns;      /* how long it is, less what the device did for others, or stood idle, at its begin */
    uint64_t from_start_ns; /* where it is from its start, all of it */
};

static struct stretch stretch_of(const struct es_work *work, const struct es_counted *latest, int64_t since_start_ns,
                                 int64_t after_ns) {
    const int64_t start_ns = since_start_ns == ES_UNTOLD ? ES_UNTOLD : told_by_start(work, since_start_ns);
    /* One whose begin nobody knows is measured where an end was counted since. */
    const bool unknown = (work->fresh || start_ns != since_start_ns) && latest->ended_ns <= work->opened_ns;
    const bool followed = after_ns != ES_UNTOLD && (start_ns == ES_UNTOLD ? !unknown : after_ns < start_ns);
    const bool started = start_ns != ES_UNTOLD && !followed;
    /* Not from before it was there. */
    const bool later = !started && work->opened_ns > latest->ended_ns, by_latest = followed && !later;
    const uint64_t opened_mark_ns = most(since(work->ahead_ns, work->before_ns), latest->mark_ns);
    struct stretch time = {.started = started, .followed = followed, .between = followed && work->opened_ns < latest->marked_ns};
    int64_t apart_ns = 0;

    time.since_ns = by_latest ? latest->ended_ns : work->opened_ns;
    time.mark_ns = by_latest ? latest->mark_ns : opened_mark_ns;
    time.span_ns = since(time.mark_ns, work->mark_ns);
    time.passed_ns = started ? start_ns : after_ns;
    time.from_start_ns = started && start_ns > 0 ? (uint64_t)start_ns : 0;
    if (started)
        apart_ns = (int64_t)work->behind_ns;
    else if (followed && later)
        apart_ns = (int64_t)(work->opened_ns - latest->ended_ns);
    if (apart_ns > 0)
        time.passed_ns -= apart_ns < time.passed_ns ? apart_ns : time.passed_ns;
    return time;
}

/* The device had run all of it when its end was marked, as far as its start tells, and nobody had waited for that: the host was the
 * slower. */
static bool was_ahead(const struct es_work *work, const struct stretch *time) {
    return work->unwaited && work->reached && work->launches > 1 && time->from_start_ns != 0 &&
           work->opened_ns + time->from_start_ns <= work->marked_ns + REACHED_NS;
}

/* It took so much longer than its launches should that no host's gaps between them say why: all of it, or what the device ran
 * for certain. */
static bool is_apart(const struct es_work *work, const struct stretch *time, uint64_t ran_for_ns) {
    const uint64_t own_ns = work->foreign || time->passed_ns < 0 ? 0 : (uint64_t)time->passed_ns;
    const uint64_t more_ns = since(time->span_ns, most(own_ns, ran_for_ns));
    /* The device had little left when the last of them had been submitted, and nobody had waited for it. */
    const bool hosted = (work->few_ns != 0 && ran_for_ns <= work->few_ns + REACHED_NS) || was_ahead(work, time);

    if (work->left || hosted || (work->stalled && more_ns <= STALLED_MOST_NS))
        return false;
    return more_ns > time->span_ns / launch_ns(work) * ES_APART_MOST_NS;
}

/* Launches of exact times end when those have passed, or a launch's time after the last was submitted: these did not. */
static bool is_late(const struct es_work *work, const struct stretch *time) {
    return time->from_start_ns >
           most(time->span_ns, since(work->opened_ns, work->marked_ns)) + most(launch_ns(work), work->few_ns) + REACHED_NS;
}

/* By its estimate it had ended before its marker was recorded, and that was done at once: so the device waited for the host. It
 * began no sooner than it was opened: if it ended later than that marker, it still ran. */
static bool was_over(const struct es_work *work, const struct es_counted *latest, const struct stretch *time,
                     uint64_t sooner_ns) {
    const bool at_once = (time->started && work->reached) || sooner_ns < work->alone_ns + AT_ONCE_NS;
    const uint64_t sure_ns = work->marked_ns + work->few_ns + REACHED_NS;
    const bool ran = time->from_start_ns != 0 && work->opened_ns + time->from_start_ns > sure_ns;
    const bool drained = work->alone_ns != 0 && work->alone_ns + work->few_ns >= time->since_ns + time->span_ns;

    return (!ran && drained && at_once) || (time->followed && began_late(work, latest));
}

/* What is counted of it: the time that passed, or its estimate where the device was `idle` for a part of that, nobody knows
 * which. */
static void count(struct es_spent *spent, const struct es_work *work, const struct es_counted *latest, const struct stretch *time,
                  bool idle, bool known, uint64_t ran_for_ns) {
    const uint64_t span_ns = time->span_ns, sure_ns = span_ns + (known ? span_ns / SURE_PART : 0);
    /* Of what others submitted, too, a part may run after its end; what all that takes is known. */
    const bool all_known = known && span_ns > work->cost_ns;
    const bool estimated = !spent->measured || work->beside || (idle && (all_known || time->passed_ns > (int64_t)sure_ns));
    const uint64_t early_ns = time->between ? latest->early_ns : 0;
    const uint64_t ns = estimated ? span_ns : less_early_ns(spent->passed_ns, span_ns, early_ns);

    spent->gpu_ns = uncounted_ns(work, latest, time->mark_ns, ns);
    if (!idle || !spent->measured)
        return;
    spent->early_ns = work->beside ? 0 : spent->gpu_ns;
    spent->gpu_ns = most(spent->gpu_ns, since(latest->waited_ns, ran_for_ns));
}

/* What it says of its own launches. */
static void teach(struct es_spent *spent, const struct es_work *work, const struct stretch *time, bool idle) {
    const uint64_t span_ns = time->span_ns;

    spent->whole = work->exact ? work->lone : span_ns == work->cost_ns;
    if (work->exact) {
        /* Between two markers with nothing in between no time passes: no launch was submitted. */
        spent->teaches = time->from_start_ns != 0;
        spent->own_ns = time->from_start_ns;
        return;
    }
    /* Of a batch that may have been submitted before the earlier marker nothing is known, unless it took longer after that than
     * it should have in all; of the time, others took their part. */
    spent->teaches = spent->measured && !idle && span_ns != 0 && time->passed_ns >= 0 &&
                     ((span_ns >= work->cost_ns && !time->between) || time->passed_ns > (int64_t)work->cost_ns);
    if (!spent->teaches)
        return;
    spent->own_ns = span_ns < work->cost_ns ? spent->passed_ns
                                            : (uint64_t)((double)spent->passed_ns * (double)work->cost_ns / (double)span_ns);
}

struct es_spent es_spent_by(const struct es_work *work, const struct es_counted *latest, int64_t start_ns, int64_t after_ns,
                            uint64_t now_ns) {
    const struct stretch time = stretch_of(work, latest, start_ns, after_ns);
    struct es_spent spent = {.ended_ns = end_of(work, latest, start_ns, after_ns, now_ns),
                             .measured = time.started || time.followed};
    const bool known = is_known(work, time.span_ns), late = is_late(work, &time);
    uint64_t ran_for_ns;
    bool idle;

    spent.no_sooner_ns = no_sooner_ns(work, latest, start_ns, after_ns, spent.ended_ns);
    ran_for_ns = ran_ns(work, latest, spent.no_sooner_ns);
    spent.behind = spent.measured && time.passed_ns < 0;
    spent.stream_ended_ns = after_ns != ES_UNTOLD && after_ns < 0 ? since((uint64_t)-after_ns, latest->ended_ns) : spent.ended_ns;
    spent.passed_ns = spent.measured && time.passed_ns > 0 ? (uint64_t)time.passed_ns : 0;
    spent.apart = spent.measured && is_apart(work, &time, ran_for_ns);
    spent.known = known && spent.measured && !work->beside;
    /* Of one that its thread closed for a reason: no host takes so long from one launch to the next as a rule. */
    spent.longer = spent.known && !work->left && (late || overran(work, latest, ran_for_ns) || spent.apart);
    idle = !work->exact && ((known && (!late || work->left)) || (work->stalled && time.span_ns != 0 && !spent.apart) ||
                            was_over(work, latest, &time, sooner_ns(latest, after_ns, now_ns)));
    count(&spent, work, latest, &time, idle, known, ran_for_ns);
    teach(&spent, work, &time, idle);
    return spent;
}
