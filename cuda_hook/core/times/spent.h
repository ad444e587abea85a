#ifndef EDGESHARE_CORE_SPENT_H
#define EDGESHARE_CORE_SPENT_H

#include <stdbool.h>
#include <stdint.h>

/* How much GPU time a batch took that has ended, from the times between its markers and others. Batches of several threads
 * run in between each other, so what passes between two markers is not the one batch's alone: what ran then is all that had
 * been submitted between them (the marks, which are sums of es_timeline), and each part of it is counted once: by the time
 * that passed where that is known, and by its estimate where it is not. */

/* From one launch to the next a host takes some ten microseconds as a rule; that it takes so much longer speaks for the device. */
enum { ES_APART_MOST_NS = 200 * 1000 };

#define ES_UNTOLD INT64_MIN /* the driver does not say, or there is no such marker */

/* A batch as it was closed. */
struct es_work {
    uint64_t cost_ns; /* estimate of its own launches */
    uint64_t opened_ns;
    uint64_t launches;  /* its own */
    uint64_t before_ns; /* what had been submitted when it was opened */
    uint64_t ahead_ns;  /* so much of that had not run then, by its estimate: it ran in the batch's own time */
    uint64_t mark_ns;   /* what had been submitted when its marker was recorded */
    uint64_t alone_ns;  /* when it was closed, if the device may have been idle then: no other was closed and had not ended,
                         * and of one that was opened while other work was queued, nothing was any more; else 0 */
    uint64_t
        few_ns; /* so little queued at its end says that the host was the slower: 0 where it may have waited for the device */
    uint64_t marked_ns; /* when the call that recorded its marker had returned */
    uint64_t behind_ns; /* for how long after its start the device still ran what others had queued, or stood idle */
    uint64_t unsure_ns; /* so much of that it may have run already, and nobody knows; 0: it had not begun */
    uint32_t grant;     /* of which it is; 0: of none */
    uint64_t known_ns;  /* so much of what had been submitted last takes as long as its estimate, exactly */
    bool stalled;       /* it stood behind one for which its stream was stopped, and ended when its thread saw that */
    bool foreign;       /* it was closed while its thread did other things */
    bool left;          /* its marker was recorded when the grant was over: it may have come behind others' work */
    bool exact;         /* its start and its end had been recorded before it ran, … */
    bool lone;          /* … and no other thread submitted anything meanwhile */
    bool unwaited;      /* nobody waited for the device while it was open */
    bool reached;       /* the device had come to its start when the first launch returned */
    bool anew;          /* … when its end was marked it had, for certain, and nothing is measured from the end before */
    bool fresh;         /* it began on an idle device, and no start was recorded */
    bool beside;        /* others' work ran in the same time: its estimate counts */
};

/* The latest end that was counted. */
struct es_counted {
    uint64_t ended_ns;     /* the host's time, … */
    uint64_t no_sooner_ns; /* … and no sooner than this, whatever delayed the host */
    uint64_t marked_ns;    /* when the call that recorded its marker had returned */
    uint64_t mark_ns;      /* all that had been submitted up to there is counted, */
    uint32_t grant;        /* of which that was */
    bool rested;           /* when that was seen nothing else had been submitted: the device stood idle */
    uint64_t early_ns;     /* so much was counted by estimates, and may run after that end, in other streams */
    uint64_t waited_ns;    /* and of what came after that, so much: it was waited for, and no marker ends it */
};

struct es_spent {
    uint64_t ended_ns;        /* … or when that was seen, where it ended before the latest did */
    uint64_t no_sooner_ns;    /* as the latest end has it */
    uint64_t stream_ended_ns; /* when its stream came to its marker, however long ago that was */
    uint64_t gpu_ns;          /* to be counted */
    uint64_t early_ns;        /* so much of that is estimates of what may run after its end: others submitted it, too */
    bool measured;            /* else it is an estimate */
    uint64_t passed_ns;       /* from its start, or from the latest end, where that is known; else 0 */
    bool behind;              /* it ended before the latest did: in another stream */
    bool known;               /* all that ran has exact times, … */
    bool longer;              /* … and yet it ended later than those say */
    bool apart;               /* so much longer than estimates say that no host's gaps between its launches are why */
    bool whole;               /* no other launches ran in that time */
    bool teaches;             /* its own launches were seen to take … */
    uint64_t own_ns;          /* … so long, all together */
};

/* `start_ns` is the time from the batch's start to its end, `after_ns` from the latest counted end; ES_UNTOLD each, where
 * that is not known. `now_ns` is when the end was seen. */
struct es_spent es_spent_by(const struct es_work *work, const struct es_counted *latest, int64_t start_ns, int64_t after_ns,
                            uint64_t now_ns);

/* What ran beside others' work, as far as it is counted. */
struct es_beside {
    uint64_t kept_ns; /* by estimates it took so much more than had gone by, */
    uint64_t free_ns; /* or so much went by, without a pause, that nothing was counted for */
};

/* What is to be counted of work of this estimate that ran beside others': no more than went by. The estimate of a function that
 * takes now so long, now so long is the mean, so what is above that is kept for the launches that take longer. `passed_ns` went
 * by since the latest end that was counted, or since it was opened, where that was later (`paused`). */
uint64_t es_spent_beside(struct es_beside *beside, uint64_t gpu_ns, uint64_t passed_ns, bool paused);

#endif
