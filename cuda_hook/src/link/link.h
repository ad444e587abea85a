#ifndef EDGESHARE_LINK_H
#define EDGESHARE_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/state.h"
#include "core/shared/config.h"
#include "core/shared/gate_page.h"
#include "core/shared/siblings.h"
#include "core/shared/used.h"
#include "core/tools/absence.h"

/* What the manager says (the word of the gate, the terms of its WELCOME, the pages that it writes) and the pages on which
 * it is answered. The session (session.h) begins and ends it. */

enum es_mode {
    ES_NEW,      /* nobody has submitted or made a context yet */
    ES_OUT,      /* no allocation: the hook stays out of the way for ever */
    ES_JOINED,   /* connected; the manager's word holds */
    ES_AWAY,     /* no manager, or it went away: launches wait for it */
    ES_UNSHARED, /* it stayed away longer than the grace time, and the policy is open: launches pass */
};

/* Everything but the atomics is under es_state_lock. */
struct es_link {
    uint32_t mode;             /* es_mode; atomic */
    struct es_gate_page *page; /* mapped once and replaced in place, so it can always be read once it is not NULL */
    struct es_hint_page *hint;
    struct es_siblings_page *siblings ES_UNDER(es_state_lock); /* NULL: there is none */
    struct es_config config;
    uint32_t epoch;
    uint32_t session; /* counts the managers that were joined; atomic */
    uint64_t queue_cap_ns ES_UNDER(es_state_lock);
    uint64_t anticipation_ns;
    bool ignore_managed;       /* managed memory is not counted */
    struct es_absence absence; /* of the manager */
};

extern struct es_link es_link __attribute__((visibility("hidden")));

/* What the launch path reads: the manager's word, or one of the two below. */
extern const uint32_t *es_link_word __attribute__((visibility("hidden")));
extern const uint32_t es_word_shut __attribute__((visibility("hidden")));
extern const uint32_t es_word_open __attribute__((visibility("hidden")));

static inline uint32_t es_mode_now(void) { return __atomic_load_n(&es_link.mode, __ATOMIC_ACQUIRE); }

/* For how long launches wait for a manager that is away. */
uint64_t es_link_grace_ns(void);

/* For how long the device still runs what others queued before this grant, as far as is known. */
uint64_t es_link_before_ns(uint64_t now_ns);

/* Where the manager reads what this client uses; before there is a page, where nobody does. */
struct es_used *es_link_used(void) ES_LOCKED(es_state_lock);

/* Something is about to be submitted; nothing is queued any more. */
void es_link_submits(uint64_t now_ns) ES_LOCKED(es_state_lock);
void es_link_drained(uint64_t now_ns) ES_LOCKED(es_state_lock);

/* Whether others' gates may be open, too: then what passes between two markers is not this client's time alone. */
bool es_link_others(void);

/* Whether nobody waits for this client to drain, as others' gates are open anyway: it keeps its grant over its pauses. */
bool es_link_keeps(void);

/* What other processes of the allocation have done with the device so far. */
uint64_t es_link_siblings(void) ES_LOCKED(es_state_lock);

/* Whether others' work, or that of other processes of the allocation, may have run since es_link_siblings said this. */
bool es_link_mixed(uint64_t siblings) ES_LOCKED(es_state_lock);

/* In a forked child: the pages are the parent's. */
void es_link_reset(void);

#endif
