#ifndef EDGESHARE_CORE_ABSENCE_H
#define EDGESHARE_CORE_ABSENCE_H

#include <stdint.h>

/* How long a client has been without its manager, and when it tries to join it again. A session that did not last is no
 * end of an absence: one whose manager takes it in and ends it again and again comes to its failure policy, and tries
 * less and less often. */
struct es_absence {
    uint64_t since_ns;    /* when it began; 0: there was none yet */
    uint64_t joined_ns;   /* when the last session began; 0: there was none yet */
    uint64_t heard_ns;    /* when the manager last said that the client has to wait; or, as it refused the client, when it is
                           * asked again; 0: it never did either */
    uint64_t next_try_ns; /* atomic */
    uint32_t cut_short;   /* sessions that did not last, in a row */
    uint32_t refusals;    /* in a row */
};

enum {
    ES_TRY_NS = 100 * 1000 * 1000,
    ES_SETTLED_MS_LEAST = 1000, /* how long a session has to last, where the grace time is less */
    ES_HEARD_MS_LEAST = 1000,   /* for how long a manager that was heard is taken to be there, likewise */
    ES_TRY_DOUBLINGS = 7,       /* at most 12.8 s between two tries */
    ES_REFUSED_DOUBLINGS = 4,   /* likewise 1.6 s where it is refused: many wait for one place */
};

/* The manager is not there, or a session with it has ended. */
void es_absence_begin(struct es_absence *absence, uint64_t now_ns, uint64_t grace_ns);

/* A session has begun. */
void es_absence_joined(struct es_absence *absence, uint64_t now_ns);

/* The manager is there and says that this client has to wait: the absence begins anew. */
void es_absence_put_off(struct es_absence *absence, uint64_t now_ns);

/* The manager is there and refuses this client: the absence begins anew when it is asked again, and that is so long after. */
uint64_t es_absence_refused(struct es_absence *absence, uint64_t now_ns);

/* Has the grace time passed? */
int es_absence_over(const struct es_absence *absence, uint64_t now_ns, uint64_t grace_ns);

#endif
