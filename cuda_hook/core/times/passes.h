#ifndef EDGESHARE_CORE_PASSES_H
#define EDGESHARE_CORE_PASSES_H

#include <stdbool.h>
#include <stdint.h>

/* What one thread may submit without asking: functions in streams, at estimated costs, each within the thread's open batch
 * alone. The thread reads and puts; whoever ends its batch forgets, while it does neither. */

enum {
    ES_PASSES = 512,       /* places: a step of a framework launches some hundreds of functions */
    ES_PASSES_PROBES = 8,  /* places where a pass may stand, one after the other */
    ES_PASSES_STREAMS = 4, /* streams that are known to belong to a batch; of more, the earliest is forgotten */
};

struct es_pass {
    uint64_t key;
    const void *stream;
    int64_t cost_ns;
    uint64_t batch; /* the one that it was put in; of any other it is a free place */
} __attribute__((aligned(32)));

struct es_passes {
    uint64_t batch; /* counts the thread's batches; what was put in another one is forgotten */
    uint32_t next;
    struct {
        const void *stream;
        uint64_t batch;
    } streams[ES_PASSES_STREAMS];
    struct es_pass entries[ES_PASSES];
};

/* Forgets all. At first also makes a table valid whose memory is zero. */
static inline void es_passes_forget(struct es_passes *passes) {
    __atomic_store_n(&passes->batch, __atomic_load_n(&passes->batch, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

/* The place where the pass of a key most probably stands. */
static inline struct es_pass *es_passes_place(struct es_passes *passes, uint64_t key) {
    /* Fibonacci hashing (costs.c); the product's upper nine bits, already times the size of a pass. */
    const uint64_t offset = key * UINT64_C(0x9E3779B97F4A7C15) >> 50 & (ES_PASSES - 1) * sizeof(struct es_pass);

    return (struct es_pass *)((char *)passes->entries + offset);
}

static inline bool es_passes_holds(const struct es_passes *passes, const struct es_pass *pass, uint64_t key, const void *stream) {
    return pass->key == key && pass->stream == stream && pass->batch == __atomic_load_n(&passes->batch, __ATOMIC_RELAXED);
}

/* The pass of a key in a stream, wherever it stands, or else the place for it: a free one, or the first where none is. Which
 * of them it is, es_passes_holds tells. */
struct es_pass *es_passes_find(struct es_passes *passes, uint64_t key, const void *stream);

/* Puts a pass in the place that was found for it. */
static inline void es_passes_put(const struct es_passes *passes, struct es_pass *place, uint64_t key, const void *stream,
                                 int64_t cost_ns) {
    *place = (struct es_pass){key, stream, cost_ns, __atomic_load_n(&passes->batch, __ATOMIC_RELAXED)};
}

/* The open batch touches this stream. */
void es_passes_note(struct es_passes *passes, const void *stream);

/* Was it noted in the open batch? False also where too many others were since. */
static inline bool es_passes_know(const struct es_passes *passes, const void *stream) {
    const uint64_t batch = __atomic_load_n(&passes->batch, __ATOMIC_RELAXED);

    for (int i = 0; i < ES_PASSES_STREAMS; i++) {
        if (passes->streams[i].stream == stream && passes->streams[i].batch == batch)
            return true;
    }
    return false;
}

#endif
