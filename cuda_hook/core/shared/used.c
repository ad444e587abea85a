#include "core/shared/used.h"

/* The client's own stores are ordered by its lock; those that a reader must not see in another order have release order. */
#define GET(member) __atomic_load_n(&(member), __ATOMIC_ACQUIRE)
#define SET(member, value) __atomic_store_n(&(member), (value), __ATOMIC_RELEASE)

static void end_spell(struct es_used *used, uint64_t now_ns) {
    const uint64_t since_ns = GET(used->idle_since_ns);

    if (since_ns == 0)
        return;
    /* In this order, and read in the other one. */
    SET(used->idle_since_ns, 0);
    if (now_ns > since_ns)
        SET(used->idle_ns, GET(used->idle_ns) + (now_ns - since_ns));
}

void es_used_count(struct es_used *used, uint64_t gpu_ns) { SET(used->gpu_ns, GET(used->gpu_ns) + gpu_ns); }

void es_used_idle(struct es_used *used, uint64_t idle_ns) { SET(used->idle_ns, GET(used->idle_ns) + idle_ns); }

void es_used_pend(struct es_used *used, uint64_t pending_ns) { SET(used->pending_ns, pending_ns); }

void es_used_submit(struct es_used *used, uint64_t now_ns) {
    end_spell(used, now_ns);
    SET(used->queued, 1);
}

void es_used_drain(struct es_used *used, uint64_t now_ns) {
    SET(used->queued, 0);
    SET(used->pending_ns, 0);
    SET(used->drained_gpu_ns, GET(used->gpu_ns));
    if (GET(used->waits) == 0 && GET(used->idle_since_ns) == 0)
        SET(used->idle_since_ns, now_ns);
}

void es_used_wait(struct es_used *used, int waits, uint64_t now_ns) {
    if (waits)
        end_spell(used, now_ns);
    SET(used->waits, waits != 0);
}

void es_hint_used(const struct es_hint_page *page, struct es_used *into) {
    /* What is written later is read sooner: the GPU time is no less than that of the drain, and a spell that is in the sum is
     * not lasting any more. */
    into->drained_gpu_ns = GET(page->used.drained_gpu_ns);
    into->gpu_ns = GET(page->used.gpu_ns);
    into->idle_ns = GET(page->used.idle_ns);
    into->idle_since_ns = GET(page->used.idle_since_ns);
    into->pending_ns = GET(page->used.pending_ns);
    into->queued = GET(page->used.queued);
    into->waits = GET(page->used.waits);
}
