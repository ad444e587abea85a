#ifndef EDGESHARE_CORE_COSTS_H
#define EDGESHARE_CORE_COSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How long each submission usually takes on the device. A key names what is submitted: a function and the magnitude
 * of its grid, a kind of copy and the magnitude of its size, a graph. Under a lock, but for what says otherwise. */

/* What these do, simulated. GPU time that is told of the 188 clients of 100 random programs on the virtual clock is off by 1.13 % on
 * the mean, of six of them more than 2 % too much is told, and one program falls short of its part of the GPU. Of 87 runs of
 * programs whose host is the slower, or whose threads share a stream, it is off by 0.33 % on the mean, of six clients by more
 * than 2 %. What moves by chance, with a program or two, is up to 0.1 % of the first mean.
 *  - Where none is timed exactly the first mean is 12.8 %, of 20 clients over 2 % too much is told. EXACT: with 1 nothing is worse,
 *    with 4 the means are 1.25 % and 0.36 %. Where no longer one (EXACT_MOST) is marked by itself the means are 1.36 % and 4.1 %;
 *    with double the second is 0.44 %, of nine, with half 0.31 %, of five.
 *  - From the third try on (EXACT) other threads are kept out: else 120 % more is told of three that share a stream.
 *  - Where no batch makes exact times doubtful (DOUBT, DOUBTS) 17 % less than was executed is told of one recorded program.
 *  - Where none is timed exactly once more (ANEW) the mean over 300 programs is 1.12 %, not 0.99 %, by one of them; four times
 *    are no better than two over 100.
 *  - Where no function is timed once more (STALE, APART), where those whose exact times agree are as often as others (SURE_STALE,
 *    SHORT), or where no call takes unusually long (CALL), the first mean is 1.14 to 1.21 %, at most two programs fall short, and
 *    the second mean is 0.32 to 0.36 %: chance does as much.
 *  - Half and double of ASKS, DOUBT, DOUBTS and TRIES show nothing beyond chance, nor do those of APART_PART in the second mean.
 *  - Without what they are for at all, FAR and GUESSES show nothing beyond chance, over 300 random programs. */
enum {
    ES_COSTS = 4096,         /* entries; a program has some hundreds of kernels */
    ES_COSTS_PROBES = 8,     /* places where a key may stand; the least used one gives way */
    ES_COSTS_WEIGHT = 8,     /* a new time counts 1/8, the first ones more: settled after some ten, follows within some twenty */
    ES_COSTS_FAR = 4,        /* two times, one after the other, so many times the mean of the first few take its place */
    ES_COSTS_LEAST_NS = 500, /* events resolve no less (CUDA Driver API, cuEventElapsedTime); and nothing costs nothing */
    ES_COSTS_STALE = 64,     /* batches that told nothing of it after which a function is timed alone once more … */
    ES_COSTS_APART = 16,     /* … and of all functions one in so many batches: each such one ends what others share */
    ES_COSTS_GUESSES = 8,    /* batches amid others, after which an unknown function is not waited for to be seen alone */
    ES_COSTS_SHORT_NS = 50 * 1000, /* what takes less may be over before its end is marked */
    /* What takes less is timed exactly: of longer ones a host is seldom the slower, and where four streams run beside each other
     * kernels of a millisecond seem to take a quarter of it. */
    ES_COSTS_EXACT_MOST_NS = 240 * 1000,
    ES_COSTS_EXACT = 2,   /* a function is timed so often at first, and once each time it is due; … */
    ES_COSTS_TRIES = 8,   /* … where others run in between as a rule, after so many tries no more at first */
    ES_COSTS_ASKS = 64,   /* launches of a short function that ask at first whether they can be timed exactly */
    ES_COSTS_DOUBT = 8,   /* batches of these count as much as one that took longer than its exact times say, … */
    ES_COSTS_DOUBTS = 32, /* … and with so many doubts none is exact */
    ES_COSTS_ANEW = 2,    /* times that it is timed exactly once more then */
    ES_COSTS_SPREAD = 16, /* exact times agree that are off their mean by such a part and less; of those that are off by a … */
    ES_COSTS_VARY = 4,    /* … part and more there are too few: it takes now so long, now so long, and all times count */
    ES_COSTS_APART_PART = 64, /* an exact time that is longer than others by such a part has a gap in it that the device made */
    ES_COSTS_SURE_STALE = 8 * ES_COSTS_STALE, /* batches after which a short one whose exact times agree is timed once more */
    /* A call that submits takes no longer, or twice as long as its like, unless its thread was put aside. */
    ES_COSTS_CALL_NS = 10 * 1000,
};

/* Who looks without the lock sees each field whole. What it read is of one key where that stands there before and after:
 * whoever sees anything of a later one sees the key gone, too. */
#define ES_COST_GET(field) __atomic_load_n(&(field), __ATOMIC_ACQUIRE)
#define ES_COST_SET(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELEASE)

/* By how much an exact time may be longer than another one and have no gap in it. */
static inline uint64_t es_costs_apart_ns(uint64_t ns) { return ns / ES_COSTS_APART_PART + ES_COSTS_LEAST_NS / 4; }

struct es_cost {
    /* What each first launch of a batch goes by stands together, so that some hundreds of functions fit into a core's first cache. */
    uint64_t key;      /* 0: a free place */
    uint64_t ns;       /* mean; meaningless without samples */
    uint64_t exact_ns; /* exact times in the mean, without those that have a gap in them; 0: none of them counts */
    uint32_t samples;
    uint32_t asks;      /* so many launches are still to ask whether they can be timed exactly, before that is left to chance */
    uint32_t missed;    /* batches since the last sample that were shared with other functions, or amid other work */
    bool mixed;         /* others may have run in all of those times, of which the shortest counts */
    bool sure;          /* exact times agree, … */
    bool varies;        /* … or do not at all, or there can be none */
    bool provisional;   /* never seen without other clients' work beside it: the shortest time in which theirs may have a part */
    bool clean;         /* one of them on a device that did nothing else for this process */
    uint64_t most_ns;   /* the mean is no more than this, as its streams came to its end, others' work and all; 0: not known */
    uint32_t exact;     /* samples of a launch between two markers of which the host had no part; then no others count */
    uint32_t tries;     /* how often it was timed so, whatever came of it */
    uint64_t spread_ns; /* how far each exact time was from the mean, in the mean */
    uint64_t pending_since_ns; /* when its first, timed launch was let go; 0 when none is on its way */
    uint64_t call_ns;          /* usual host time of the call that submits it; 0: not known */
    uint64_t far_ns;           /* the latest time, where that was far above the mean of the first few; 0: it was not */
    uint32_t anew;             /* how often it was to be timed exactly once more, as those times were doubted */
    uint64_t single_ns;        /* the latest exact time that was no more exact than the mean, being one; 0: there was none */
} __attribute__((aligned(64)));

struct es_costs {
    struct es_cost entries[ES_COSTS];
    uint64_t call_ns;     /* usual host time of a call that submits; 0: not known */
    uint32_t doubts;      /* batches that took longer than exact times say count several, others come off */
    uint32_t batches;     /* since a function that was due again was timed alone */
    uint32_t most_missed; /* of any function, as far as it was seen since then */
};

/* The entry of a key (never 0), made when there is none; never NULL. Valid until the next call. */
struct es_cost *es_costs_find(struct es_costs *costs, uint64_t key);

/* A batch of this key's launches has ended, and how long they took was not seen: `amid` other work, of whose time it has an
 * unknown part. */
void es_costs_miss(struct es_costs *costs, uint64_t key, int amid);

/* The entry of a key for what follows, or NULL. Needs no lock, and the next moment it may be another key's. */
struct es_cost *es_costs_look(struct es_costs *costs, uint64_t key);

/* How long a launch of the key usually takes, `beside` other clients' work or not; 0 when that is not known, or is to be
 * measured anew or exactly. Needs no lock: what it says was true of this key at some moment of the call. */
int64_t es_costs_known_ns(const struct es_costs *costs, const struct es_cost *entry, uint64_t key, bool beside);

/* Is a launch so long that it may end its batch? Its marker is a hundredth of that, and no time of the host's lies between the two. */
static inline bool es_costs_marked_singly(uint64_t ns) { return ns >= ES_COSTS_EXACT_MOST_NS; }

/* How long a launch of an entry that has samples usually takes. Beside others nothing but this says what it took: a gap that the
 * device made between two markers, which made an exact time longer, is left out. */
uint64_t es_costs_usual_ns(const struct es_cost *entry, bool beside);

/* Is it time to see it alone once more? It is the turn of the one that was not seen for longest. Needs no lock. */
bool es_costs_due(const struct es_costs *costs, const struct es_cost *entry);

/* A batch is opened; `again`: for one that is due. */
void es_costs_count(struct es_costs *costs, bool again);

/* A batch that will tell nothing of the key has launches of it: other functions share it. Needs no lock: beside others a
 * count may be lost. */
void es_costs_share(struct es_costs *costs, struct es_cost *entry);

/* Is it so short that it is timed exactly? Under the lock. */
bool es_costs_timed_exactly(const struct es_cost *entry);

/* Should a launch of the key be timed exactly? Not while one is on its way. Under the lock. */
bool es_costs_vague(const struct es_costs *costs, const struct es_cost *entry);

/* Were others in what it was timed by so far, as often as that was tried? Under the lock. */
bool es_costs_disturbed(const struct es_cost *entry);

/* A launch has asked whether it can be timed exactly, as the first ones of a short function do. Under the lock. */
void es_costs_ask(struct es_cost *entry);

/* A launch that is due cannot be timed exactly now: the others are not to wait for it. Under the lock. */
void es_costs_put_off(struct es_costs *costs, struct es_cost *entry);

/* A launch of the key took this long, with no part of the host's in it. Unless it was `alone` others may have run in that time. */
void es_costs_learn_exact(struct es_costs *costs, uint64_t key, uint64_t ns, bool alone);

/* No launch of the key is timed exactly any more: that is not to be done, or says nothing. */
void es_costs_give_up(struct es_costs *costs, uint64_t key);

/* A batch of launches with exact times was measured: did it take longer than they say? Where that is so more often than now and
 * then, no time is taken for exact any more: of which launch it was not so, nobody knows. */
void es_costs_judge(struct es_costs *costs, bool longer);

/* A launch of this entry takes so long, as its kind says: as exact as times come, unless more of them are found to be wrong. */
void es_costs_assume(struct es_cost *entry, uint64_t ns);

/* Is the time that is known of it exact? Needs no lock. */
static inline bool es_costs_sure(const struct es_cost *entry) { return ES_COST_GET(entry->sure); }

/* The call that submitted one took this long on the host. Is that usual, for its key, or where that is not known, for all?
 * It is learned where `blocks` is 0: a call that may wait for the device tells nothing. */
int es_costs_call(struct es_costs *costs, uint64_t key, uint64_t ns, int blocks);

/* So much of the estimates of these launches may be the host's time: one that was timed by itself, on an idle device, ended
 * after its own call and the one that recorded its end. */
uint64_t es_costs_host_ns(const struct es_costs *costs, uint64_t launches);

/* One launch of the key was seen to take this long. */
void es_costs_learn(struct es_costs *costs, uint64_t key, uint64_t ns);

/* One was seen to take no longer than this while other processes' work ran beside it, which has an unknown part of that time.
 * The shortest such time counts until one is learned without; after that they say nothing. */
void es_costs_learn_beside(struct es_costs *costs, uint64_t key, uint64_t most_ns);

/* A launch of the key was over `most_ns` after its stream was free for it, whatever else ran meanwhile. */
void es_costs_bound(struct es_costs *costs, uint64_t key, uint64_t most_ns);

/* A launch of the key took a time in which others ran, too: `ns` is its part by the estimates of all, `most_ns` all of the time.
 * As long as its own estimate is a guess the part is one, too, and is left for a time that was its alone; where there is none for
 * long, all of the time is the most that it can be. */
void es_costs_learn_part(struct es_costs *costs, uint64_t key, uint64_t ns, uint64_t most_ns);

#endif
