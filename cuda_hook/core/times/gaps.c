#include "core/times/gaps.h"

/* Twenty slices: what a program does now. */
enum { RECENT_NS = 100 * 1000 * 1000 };

/* Gaps are wide from half of the GPU time on: two such programs have half as much again beside each other as by turns. They are no
 * more where they are a third of it. */
enum { WIDE_PART = 2, NARROW_PART = 3 };

/* No thread's work is seen to have ended so late: four slices. */
enum { AHEAD_MOST_NS = 20 * 1000 * 1000 };

static uint64_t usual_ns(const struct es_gaps *gaps, uint64_t gpu_ns) {
    return !gaps->wide ? 0 : (uint64_t)((double)gpu_ns * (double)gaps->idle_ns / (double)gaps->gpu_ns);
}

static void see(struct es_gaps *gaps, uint64_t gpu_ns, uint64_t idle_ns) {
    gaps->gpu_ns += gpu_ns;
    gaps->idle_ns += idle_ns;
    gaps->wide = gaps->gpu_ns != 0 && gaps->idle_ns > gaps->gpu_ns / (gaps->wide ? NARROW_PART : WIDE_PART);
    if (gaps->gpu_ns + gaps->idle_ns > RECENT_NS) {
        gaps->gpu_ns /= 2;
        gaps->idle_ns /= 2;
    }
}

void es_gaps_begin(struct es_gaps *gaps, uint64_t now_ns) { gaps->from_ns = now_ns; }

uint64_t es_gaps_end(struct es_gaps *gaps, uint64_t ended_ns, uint64_t gpu_ns, bool beside) {
    const uint64_t passed_ns = ended_ns > gaps->from_ns ? ended_ns - gaps->from_ns : 0;
    const uint64_t ran_ns = gaps->ahead_ns + gpu_ns;
    uint64_t idle_ns;

    if (beside || gaps->from_ns == 0) {
        es_gaps_begin(gaps, beside ? 0 : ended_ns);
        return usual_ns(gaps, gpu_ns);
    }
    gaps->from_ns += passed_ns;
    /* The ends of several threads' work are seen in another order than that in which it ran, of some when all have drained: gaps
     * that were told too soon are made up for, also by the next ones. */
    gaps->ahead_ns = ran_ns > passed_ns ? ran_ns - passed_ns : 0;
    if (gaps->ahead_ns > AHEAD_MOST_NS)
        gaps->ahead_ns = AHEAD_MOST_NS;
    idle_ns = passed_ns > ran_ns ? passed_ns - ran_ns : 0;
    see(gaps, gpu_ns, idle_ns);
    return gaps->wide ? idle_ns : 0;
}
