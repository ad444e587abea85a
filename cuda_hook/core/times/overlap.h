#ifndef EDGESHARE_CORE_OVERLAP_H
#define EDGESHARE_CORE_OVERLAP_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the device runs this process's streams beside each other, and how much time that saves. It is seen by how soon work
 * ends that was submitted while other streams were busy: were streams to add up, not before all that was queued. Nothing is
 * lost where that is taken for true and is not: what is queued is told by what such work took together (own_ns, gpu_ns). */
struct es_overlap {
    bool seen;
    uint32_t judged;  /* such work since the last verdict */
    uint64_t said_ns; /* for how long it had to wait for other work, were streams to add up; the recent counts most, … */
    uint64_t took_ns; /* … and for how long it did */
    uint64_t own_ns;  /* what all work took by itself, by its estimates, since overlap was seen; the recent counts most, … */
    uint64_t gpu_ns;  /* … and what it took together */
};

/* What was queued in other streams when some work was submitted, and what had to run before its end anyway: what was queued in
 * its own stream, and itself. By its estimates, and without what of these may be the host's time, which is saved where streams
 * add up, too. */
struct es_queued {
    uint64_t beside_ns;
    uint64_t ahead_ns;
};

/* Such work ended took_ns after it was submitted. */
void es_overlap_judge(struct es_overlap *overlap, struct es_queued queued, uint64_t took_ns);

/* Work of this estimate ended, and made the device busy for gpu_ns more. */
void es_overlap_count(struct es_overlap *overlap, uint64_t own_ns, uint64_t gpu_ns);

/* How long the device takes for work that takes own_ns by itself, all together; own_ns where streams add up. */
uint64_t es_overlap_together_ns(const struct es_overlap *overlap, uint64_t own_ns);

#endif
