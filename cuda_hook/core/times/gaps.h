#ifndef EDGESHARE_CORE_GAPS_H
#define EDGESHARE_CORE_GAPS_H

#include <stdbool.h>
#include <stdint.h>

/* How long the device has nothing to do while a program has something queued, since its host takes longer to submit kernels than
 * they run, and to see that they have ended: what passes from one end to the next and is no GPU time. While others use the device,
 * too, nobody sees that; it is reckoned with as usual then. Of a program that has little of it nothing is told: where two such are
 * beside each other each of them waits for the other's kernels, and little is gained. Times are the host's. */
struct es_gaps {
    uint64_t from_ns;  /* the latest end, or the first submission to an idle device; 0: others' work may have been before */
    uint64_t ahead_ns; /* GPU time that was counted and ran before that, or later */
    uint64_t gpu_ns;   /* GPU time that was seen, the recent counting most, … */
    uint64_t idle_ns;  /* … and the gaps meanwhile, … */
    bool wide;         /* … which are much of the time */
};

/* Something is submitted while nothing is queued. `now_ns` is 0 where others' work may run first. */
void es_gaps_begin(struct es_gaps *gaps, uint64_t now_ns);

/* Work that took so much has ended; `beside`: others' work ran in the same time. Returns the gaps since the latest end, if
 * they are wide. */
uint64_t es_gaps_end(struct es_gaps *gaps, uint64_t ended_ns, uint64_t gpu_ns, bool beside);

#endif
