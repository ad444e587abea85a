#ifndef EDGESHARE_GATE_H
#define EDGESHARE_GATE_H

#include <stdint.h>

#include "link/link.h"
#include "threads/slots.h"

/* How a submission was let go: its slot's address, with ES_ASKED added where the gate was asked; ES_ASK when it must be. */
enum { ES_ASK = 0, ES_ASKED = 1 };

/* The launch path: when the submission may go at once, its slot; else ES_ASK. One word is read; nothing shared is
 * written; no fence, no clock. `busy` tells the helper, after it has shut the gate and made every core pass a barrier
 * (membarrier), which threads may still be about to submit under the old word. */
static inline __attribute__((always_inline)) uintptr_t es_gate_pass(uint64_t key, CUstream stream) {
    struct es_slot *slot = es_slot_self;
    struct es_pass *pass;
    int64_t left_ns;

    if (__builtin_expect(slot == NULL, 0)) {
        es_asked = (struct es_asked){key, stream};
        return ES_ASK;
    }
    __atomic_store_n(&slot->busy, slot->busy + 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    pass = es_passes_place(slot->passes, key);
    left_ns = __atomic_load_n(&slot->left_ns, __ATOMIC_RELAXED) - pass->cost_ns;
    if (__builtin_expect(__atomic_load_n(__atomic_load_n(&es_link_word, __ATOMIC_RELAXED), __ATOMIC_RELAXED) ==
                                 __atomic_load_n(&slot->word, __ATOMIC_RELAXED) &&
                             es_passes_holds(slot->passes, pass, key, stream) && left_ns >= 0,
                         1)) {
        __atomic_store_n(&slot->left_ns, left_ns, __ATOMIC_RELAXED);
        __atomic_store_n(&slot->launches, slot->launches + 1, __ATOMIC_RELAXED);
        return (uintptr_t)slot;
    }
    __atomic_store_n(&slot->busy, slot->busy - 1, __ATOMIC_RELAXED);
    es_asked = (struct es_asked){key, stream};
    return ES_ASK;
}

/* The slow path: returns when the submission in es_asked may go. ES_ASKED alone: it is none of the hook's business (no allocation, a
 * capture, a call from within the driver). Keeps errno. */
uintptr_t es_gate_ask(void) __attribute__((cold));

/* What follows a submission that was asked for. Keeps errno. */
void es_gate_answered(uintptr_t passed) __attribute__((cold));

/* The submission has returned from the driver. */
static inline __attribute__((always_inline)) void es_gate_passed(uintptr_t passed) {
    struct es_slot *slot = (struct es_slot *)passed;

    if (__builtin_expect((passed & ES_ASKED) != 0, 0))
        es_gate_answered(passed);
    else
        __atomic_store_n(&slot->busy, slot->busy - 1, __ATOMIC_RELEASE);
}

#endif
