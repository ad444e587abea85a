#include "backlog/room.h"

#include "backlog/backlog.h"
#include "backlog/closed.h"
#include "backlog/submitted.h"
#include "driver/streams.h"
#include "link/link.h"

enum {
    /* With no rival: what may be queued. A rival that comes waits that long once. It is as much as a driver takes of
     * short kernels (1,024 launches of 50 us), so that programs that run ahead of the device still can. */
    ALONE_CAP_NS = 50 * 1000 * 1000,
    LONGEST_SLICE_NS = 100 * 1000 * 1000, /* the manager's configuration allows no more (slice_ms) */
};

/* Who is let in beside others that leave gaps has its queue run empty after so much GPU time. A device that takes turns
 * between processes would else keep to this one for all of its own slice (2 ms), and a wake and a launch are a twentieth of this. */
enum { YIELD_NS = 250 * 1000 };

/* Simulated: where every estimate is taken for right, told GPU time of 100 random programs is off by 1.21 % on the mean, not
 * 1.13 %, and two fall short of their part of the GPU, not one: chance does nearly as much. */
enum {
    TRIES = 4, /* batches after which a function's estimate is taken for right, also in one of several streams, … */
    FAR = 8,   /* … unless its streams were always kept for so many times as long */
};

struct es_room es_room_now(uint32_t word, uint64_t cost_ns, uint64_t now_ns) {
    struct es_room room = {.cap_ns = ALONE_CAP_NS};
    uint64_t queue_ns = es_link.queue_cap_ns, ends_at_ns;

    if ((word & ES_GATE_CONTENDED) != 0) {
        const uint32_t cap_ns = __atomic_load_n(&es_link.page->cap_ns, __ATOMIC_RELAXED);

        if (cap_ns != 0)
            queue_ns = cap_ns;
        room.yields = queue_ns < es_link.queue_cap_ns && es_submitted_ns() - es_backlog.run_from_ns >= YIELD_NS;
        ends_at_ns = __atomic_load_n(&es_link.page->ends_at_ns, __ATOMIC_RELAXED);
        room.cap_ns = queue_ns;
        if (ends_at_ns > now_ns && ends_at_ns - now_ns <= LONGEST_SLICE_NS)
            room.cap_ns += (ends_at_ns - now_ns) / 4 * 3;
    }
    /* One that would fill a quarter of the queue is let go as soon as the cap allows. */
    if (cost_ns >= room.cap_ns / 4) {
        room.floor_ns = queue_ns;
        room.level_ns = room.cap_ns;
    } else {
        room.floor_ns = queue_ns / 4 * 3;
        room.level_ns = room.cap_ns / 2;
    }
    if (room.level_ns < room.floor_ns)
        room.level_ns = room.floor_ns;
    return room;
}

uint64_t es_room_wait_ns(const struct es_room *room, uint64_t queued_ns) {
    const uint64_t over_ns = queued_ns - room->level_ns;
    const uint64_t meet_ns = room->level_ns == room->cap_ns ? 4 * over_ns : over_ns * 8 / 5;

    return meet_ns < queued_ns - room->floor_ns ? meet_ns : queued_ns - room->floor_ns;
}

uint64_t es_room_queued_ns(const struct es_slot *slot, int index, const struct es_room *room, uint64_t now_ns) {
    const uint64_t all_ns = es_queued_ns(now_ns);
    uint64_t stream_ns, most_ns;

    if (!es_backlog.overlap.seen)
        return all_ns;
    stream_ns = es_closed_in_stream_ns(index) + es_submitted_in(slot);
    most_ns = es_closed_longest_ns() + room->cap_ns;
    if (stream_ns > all_ns)
        return all_ns;
    return all_ns > most_ns && all_ns - most_ns > stream_ns ? all_ns - most_ns : stream_ns;
}

/* What was only ever timed amid other streams' work may have run beside that, and take anything up to all of the time for which
 * its stream was kept. */
static bool trusted(const struct es_cost *cost) {
    return cost->samples + cost->missed >= TRIES && (cost->clean || cost->ns >= cost->most_ns / FAR);
}

uint64_t es_room_launches(const struct es_room *room, const struct es_cost *cost, int index) {
    if (cost->most_ns == 0 || trusted(cost) || !es_streams_many())
        return UINT64_MAX;
    if ((es_closed_streams() >> index & 1) != 0)
        return 0;
    return room->cap_ns / cost->most_ns + 1;
}
