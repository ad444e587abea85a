#include "core/times/passes.h"

#include <stddef.h>

_Static_assert(ES_PASSES * sizeof(struct es_pass) == 1 << (64 - 50), "es_passes_place takes the upper bits");

static struct es_pass *after(struct es_passes *passes, struct es_pass *first, int probe) {
    return &passes->entries[(first - passes->entries + probe) % ES_PASSES];
}

struct es_pass *es_passes_find(struct es_passes *passes, uint64_t key, const void *stream) {
    const uint64_t batch = __atomic_load_n(&passes->batch, __ATOMIC_RELAXED);
    struct es_pass *first = es_passes_place(passes, key), *pass = first;

    /* Within a batch no place falls free: beyond a free one there is none. */
    for (int probe = 1; pass->batch == batch; probe++) {
        if (pass->key == key && pass->stream == stream)
            return pass;
        if (probe == ES_PASSES_PROBES)
            return first;
        pass = after(passes, first, probe);
    }
    return pass;
}

void es_passes_note(struct es_passes *passes, const void *stream) {
    const uint64_t batch = __atomic_load_n(&passes->batch, __ATOMIC_RELAXED);

    if (es_passes_know(passes, stream))
        return;
    /* Most batches are of one stream: it is where es_passes_know looks first. */
    if (passes->streams[0].batch != batch)
        passes->next = 0;
    passes->streams[passes->next].stream = stream;
    passes->streams[passes->next].batch = batch;
    passes->next = (passes->next + 1) % ES_PASSES_STREAMS;
}
