#include "core/times/bursts.h"

enum {
    APART_MOST_NS = 1000 * 1000, /* a pause says nothing of what a program does without one */
    COST_PART = 64,              /* timing may take such a part of the time */
    RECORDS = 4,                 /* … and costs as much as so many starts: it is recorded, its end is, and both times are asked */
};

static uint64_t one_in(const struct es_bursts *bursts) {
    uint64_t many;

    if (bursts->apart_ns == 0)
        return ES_BURSTS_TIMED;
    many = COST_PART * RECORDS * bursts->record_ns / bursts->apart_ns;
    if (many < ES_BURSTS_TIMED)
        return ES_BURSTS_TIMED;
    return many < ES_BURSTS_SELDOM ? many : ES_BURSTS_SELDOM;
}

bool es_bursts_choose(struct es_bursts *bursts, uint64_t now_ns) {
    uint64_t apart_ns = now_ns - bursts->begun_ns;

    if (apart_ns > APART_MOST_NS)
        apart_ns = APART_MOST_NS;
    if (bursts->apart_ns == 0 && bursts->begun_ns != 0)
        bursts->apart_ns = apart_ns;
    else if (bursts->begun_ns != 0)
        bursts->apart_ns = (uint64_t)((int64_t)bursts->apart_ns + ((int64_t)apart_ns - (int64_t)bursts->apart_ns) / 8);
    bursts->begun_ns = now_ns;
    /* In whatever rhythm a program's bursts are unlike each other, as often of each kind: the multiples of the golden ratio
     * are spread evenly, and so are each second, each third of them (Weyl's theorem). */
    return bursts->count++ * UINT32_C(0x9E3779B9) < UINT32_MAX / one_in(bursts);
}

void es_bursts_recorded(struct es_bursts *bursts, uint64_t ns) {
    const uint64_t usual_ns = bursts->record_ns;

    /* Downwards at once and upwards slowly: a thread that is put aside meanwhile makes it longer, and nothing shorter. */
    if (usual_ns == 0 || ns < usual_ns)
        bursts->record_ns = ns;
    else
        bursts->record_ns += (ns < 2 * usual_ns ? ns - usual_ns : usual_ns) / 8;
}
