#include "passes.h"

#include <stddef.h>

_Static_assert(ES_PASSES * sizeof(struct es_pass) == 1 << (64 - 50), "es_passes_place takes the upper bits");

static struct es_pass *after(struct es_passes *passes, struct es_pass *first, int probe)
{
    return &passes->entries[(first - passes->entries + probe) % ES_PASSES];
}

struct es_pass *es_passes_find(struct es_passes *passes, uint64_t key, const void *stream)
{
    struct es_pass *first = es_passes_place(passes, key);

    for (int probe = 0; probe < ES_PASSES_PROBES; probe++) {
        struct es_pass *pass = after(passes, first, probe);

        if (es_passes_holds(passes, pass, key, stream))
            return pass;
        /* Within a batch no place falls free: beyond a free one there is none. */
        if (pass->batch != __atomic_load_n(&passes->batch, __ATOMIC_RELAXED))
            break;
    }
    return NULL;
}

bool es_passes_know(const struct es_passes *passes, const void *stream)
{
    for (int i = 0; i < ES_PASSES_STREAMS; i++) {
        if (passes->streams[i].stream == stream &&
            passes->streams[i].batch == __atomic_load_n(&passes->batch, __ATOMIC_RELAXED))
            return true;
    }
    return false;
}

void es_passes_add(struct es_passes *passes, uint64_t key, const void *stream, int64_t cost_ns)
{
    const uint64_t batch = __atomic_load_n(&passes->batch, __ATOMIC_RELAXED);
    struct es_pass *first = es_passes_place(passes, key), *pass = first;

    for (int probe = 1; probe < ES_PASSES_PROBES && pass->batch == batch; probe++)
        pass = after(passes, first, probe);
    if (pass->batch == batch)
        pass = first;
    *pass = (struct es_pass){key, stream, cost_ns, batch};
    if (!es_passes_know(passes, stream)) {
        passes->streams[passes->next].stream = stream;
        passes->streams[passes->next].batch = batch;
        passes->next = (passes->next + 1) % ES_PASSES_STREAMS;
    }
}
