#include "core/times/overlap.h"

enum {
    /* Beside less, a few calls of the host and ends that are seen late make too much of what is waited for, or not. */
    LEAST_NS = 250 * 1000,
    RECENT_NS = 10 * 1000 * 1000, /* by so much it is judged; older work counts half, and so on */
    RECENT = 4,                   /* … and by no less such work */
    MOST = 16,                    /* times that work is taken to be shorter at most */
};

void es_overlap_judge(struct es_overlap *overlap, struct es_queued queued, uint64_t took_ns) {
    const uint64_t waited_ns = took_ns > queued.ahead_ns ? took_ns - queued.ahead_ns : 0;

    if (queued.beside_ns < LEAST_NS)
        return;
    overlap->judged++;
    overlap->said_ns += queued.beside_ns;
    /* Where estimates were far too low, that says nothing for long. */
    overlap->took_ns += waited_ns < 2 * queued.beside_ns ? waited_ns : 2 * queued.beside_ns;
    if (overlap->said_ns < RECENT_NS || overlap->judged < RECENT)
        return;
    overlap->judged = 0;
    /* Estimates are off by some; between the two bounds it stays as it was. */
    if (!overlap->seen && overlap->took_ns < overlap->said_ns / 4 * 3) {
        overlap->seen = true;
        /* As if streams had added up so far: the first few ends say little. */
        overlap->own_ns = overlap->gpu_ns = RECENT_NS / 4;
    } else if (overlap->took_ns > overlap->said_ns / 8 * 7) {
        overlap->seen = false;
    }
    overlap->said_ns /= 2;
    overlap->took_ns /= 2;
}

void es_overlap_count(struct es_overlap *overlap, uint64_t own_ns, uint64_t gpu_ns) {
    if (!overlap->seen)
        return;
    overlap->own_ns += own_ns;
    overlap->gpu_ns += gpu_ns;
    if (overlap->own_ns > RECENT_NS) {
        overlap->own_ns /= 2;
        overlap->gpu_ns /= 2;
    }
}

uint64_t es_overlap_together_ns(const struct es_overlap *overlap, uint64_t own_ns) {
    if (!overlap->seen || overlap->gpu_ns >= overlap->own_ns)
        return own_ns;
    if (overlap->gpu_ns < overlap->own_ns / MOST)
        return own_ns / MOST;
    return (uint64_t)((double)own_ns * (double)overlap->gpu_ns / (double)overlap->own_ns);
}
