#include "markers/stops.h"

#include "backlog/backlog.h"
#include "backlog/submitted.h"
#include "base/state.h"
#include "core/tools/clock.h"
#include "driver/contexts.h"
#include "driver/streams.h"
#include "driver/symbols.h"

enum {
    STOPPED_MOST_NS = 1000 * 1000, /* the calls take some ten microseconds */
    FAILURES_MOST = 4,             /* after so many one after the other that failed or took too long none is stopped any more */
    STILL_LOOKS = 4,
    STILL_LOOK_NS = 25 * 1000, /* a call that submits takes less, unless it waits for the device */
};

static const struct es_slot *owner; /* for whom one is stopped, or was last and nobody has said that it may go on; atomic */
static uint32_t number ES_UNDER(es_state_lock); /* of the latest stop, of which … */
static uint32_t over;                           /* … all up to this one are over; futex, private */
static uint32_t late;                           /* the latest that was over before anybody had said so; atomic */
static uint32_t failures ES_UNDER(es_state_lock);

/* On a thread of the driver's: the stream waits for it, and it for the end of the stop. */
static void stand(void *which) {
    const uint32_t wanted = (uint32_t)(uintptr_t)which;
    const uint64_t until_ns = es_now_ns() + STOPPED_MOST_NS;

    for (;;) {
        const uint32_t seen = __atomic_load_n(&over, __ATOMIC_ACQUIRE);
        const uint64_t now_ns = es_now_ns();

        if ((int32_t)(seen - wanted) >= 0)
            return;
        if (now_ns >= until_ns) {
            __atomic_store_n(&late, wanted, __ATOMIC_RELEASE);
            return;
        }
        es_sleep_on(&over, seen, until_ns - now_ns);
    }
}

ES_LOCKED(es_state_lock) static void go_on(void) {
    __atomic_store_n(&over, number, __ATOMIC_RELEASE);
    __atomic_store_n(&owner, NULL, __ATOMIC_RELAXED);
}

bool es_stop_can(void) { return owner == NULL && failures < FAILURES_MOST && ES_DRIVER(cuLaunchHostFunc) != NULL; }

/* The stream is this thread's to submit to, and the current context's where its handle alone does not say which is meant. */
static bool submit(const struct es_use *use, uint32_t which) {
    struct es_quiet quiet;
    bool done = false;

    if (es_stream_is_default(use->handle) && es_context_current() != use->owner)
        return false;
    quiet = es_quiet_begin();
    if (!es_stream_capturing(use->handle))
        done = ES_DRIVER(cuLaunchHostFunc)(use->handle, stand, (void *)(uintptr_t)which) == CUDA_SUCCESS;
    es_quiet_end(quiet);
    return done;
}

bool es_stop_begin(const struct es_slot *slot, int stream) {
    struct es_use use;
    uint32_t which;
    bool can, done = false;

    if (!es_stream_use(stream, &use))
        return false;
    es_lock_take(&es_state_lock);
    can = es_stop_can();
    if (can) {
        number++;
        __atomic_store_n(&owner, slot, __ATOMIC_RELAXED);
    }
    which = number;
    es_lock_give(&es_state_lock);
    if (can)
        done = submit(&use, which);
    es_stream_used(&use);
    if (!can)
        return false;
    es_lock_take(&es_state_lock);
    if (!done && number == which) {
        failures++;
        go_on();
    }
    es_lock_give(&es_state_lock);
    return done;
}

uint64_t es_stop_others_ns(const struct es_slot *slot) {
    uint64_t others_ns = UINT64_MAX;

    for (int i = 0; i < STILL_LOOKS && others_ns == UINT64_MAX; i++) {
        if (i > 0)
            es_progress_wait(es_progress_seen(), STILL_LOOK_NS);
        es_lock_take(&es_state_lock);
        others_ns = es_submitted_by_others(slot);
        es_lock_give(&es_state_lock);
    }
    return others_ns;
}

bool es_stop_holds(const struct es_slot *slot) { return owner == slot && __atomic_load_n(&late, __ATOMIC_ACQUIRE) != number; }

void es_stop_end(const struct es_slot *slot) {
    if (__atomic_load_n(&owner, __ATOMIC_RELAXED) != slot)
        return;
    es_lock_take(&es_state_lock);
    if (owner == slot) {
        if (es_stop_holds(slot)) {
            failures = 0;
        } else {
            /* Its launch may be one that waits for the device, now and each time. */
            failures++;
            if (slot->batch.key != 0)
                es_costs_give_up(&es_backlog.costs, slot->batch.key);
        }
        go_on();
    }
    es_lock_give(&es_state_lock);
    es_wake_all(&over);
}

ES_UNCHECKED void es_stop_reset(void) {
    owner = NULL;
    over = number;
}
