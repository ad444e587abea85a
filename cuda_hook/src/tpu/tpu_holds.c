#include "tpu/tpu_holds.h"

#include <errno.h>

#include "base/kernel.h"
#include "core/tools/lock.h"
#include "tpu/tpu.h"

static struct es_lock lock;
static struct es_tpu_hold holds[ES_TPU_HOLDS] ES_UNDER(lock);
static uint32_t count ES_UNDER(lock); /* as es_tpu_held, under the lock */

uint32_t es_tpu_held;

ES_LOCKED(lock) static struct es_tpu_hold *find(int fd) {
    for (uint32_t i = 0; i < count; i++) {
        if (holds[i].fd == fd)
            return &holds[i];
    }
    return NULL;
}

/* False when there is no room: then the descriptor keeps nothing, and the slice ends with the others. */
ES_LOCKED(lock) static bool put(struct es_tpu_hold hold) {
    if (count == ES_TPU_HOLDS)
        return false;
    holds[count++] = hold;
    __atomic_store_n(&es_tpu_held, count, __ATOMIC_RELEASE);
    return true;
}

ES_LOCKED(lock) static void take_off(struct es_tpu_hold *hold) {
    *hold = holds[--count];
    __atomic_store_n(&es_tpu_held, count, __ATOMIC_RELEASE);
}

ES_UNCHECKED void es_tpu_holds_reset(void) {
    lock = (struct es_lock){0};
    count = 0;
    __atomic_store_n(&es_tpu_held, 0, __ATOMIC_RELEASE);
}

void es_tpu_hold_flagged(void) {
    const int error = errno;
    bool outlives = false;

    es_lock_take(&lock);
    for (uint32_t i = 0; i < count; i++) {
        const int flags = es_kernel_control(holds[i].fd, F_GETFD, 0);

        outlives |= flags >= 0 && (flags & FD_CLOEXEC) == 0;
    }
    es_lock_give(&lock);
    es_tpu_outlive_exec(outlives);
    errno = error;
}

void es_tpu_hold_opened(int fd, int node, int flags) {
    const struct es_tpu_hold hold = {.fd = fd, .node = node, .flags = flags};
    bool kept;

    es_lock_take(&lock);
    kept = put(hold);
    es_lock_give(&lock);
    if (kept)
        es_tpu_hold_flagged();
    else
        es_tpu_leave();
}

void es_tpu_hold_claimed(int fd, uint32_t interface) {
    const uint32_t bit = interface < 32 ? UINT32_C(1) << interface : 0;
    struct es_tpu_hold *known;
    bool kept = false;

    es_lock_take(&lock);
    known = find(fd);
    if (known != NULL)
        known->interfaces |= bit;
    else if (bit != 0)
        kept = put((struct es_tpu_hold){.fd = fd, .node = -1, .interfaces = bit});
    es_lock_give(&lock);
    if (kept)
        es_tpu_hold_flagged();
    else
        es_tpu_leave(); /* the descriptor keeps it already */
}

void es_tpu_hold_released(int fd, uint32_t interface) {
    struct es_tpu_hold *known;
    bool over;

    es_lock_take(&lock);
    known = find(fd);
    over = known != NULL && known->node < 0 && interface < 32 && known->interfaces == UINT32_C(1) << interface && !known->parked;
    if (over)
        take_off(known);
    else if (known != NULL && interface < 32)
        known->interfaces &= ~(UINT32_C(1) << interface);
    es_lock_give(&lock);
    if (over)
        es_tpu_leave();
}

void es_tpu_hold_copied(int fd, int copy) {
    struct es_tpu_hold *known;
    bool kept = false;

    es_lock_take(&lock);
    known = find(fd);
    if (known != NULL) {
        struct es_tpu_hold hold = *known;

        hold.fd = copy;
        kept = put(hold) && !hold.parked;
    }
    if (kept)
        es_tpu_keep();
    es_lock_give(&lock);
    if (kept)
        es_tpu_hold_flagged();
}

bool es_tpu_hold_closing(int fd, struct es_tpu_hold *was) {
    return fd >= 0 && es_tpu_hold_closing_range((unsigned int)fd, (unsigned int)fd, was);
}

bool es_tpu_hold_closing_range(unsigned int first, unsigned int last, struct es_tpu_hold *was) {
    bool found = false;

    es_lock_take(&lock);
    for (uint32_t i = 0; i < count && !found; i++) {
        if ((unsigned int)holds[i].fd >= first && (unsigned int)holds[i].fd <= last) {
            *was = holds[i];
            take_off(&holds[i]);
            found = true;
        }
    }
    es_lock_give(&lock);
    return found;
}

void es_tpu_hold_closed(const struct es_tpu_hold *was) {
    if (!was->parked)
        es_tpu_leave();
}

void es_tpu_hold_stays(const struct es_tpu_hold *was) {
    bool kept;

    es_lock_take(&lock);
    kept = put(*was);
    es_lock_give(&lock);
    if (!kept)
        es_tpu_hold_closed(was);
}

bool es_tpu_park(void) {
    const int error = errno;
    bool possible = true;
    uint32_t parked = 0;

    es_lock_take(&lock);
    for (uint32_t i = 0; i < count && possible; i++)
        possible = holds[i].parked || holds[i].node < 0 || !es_tpu_hold_mapped(&holds[i]);
    for (uint32_t i = 0; i < count && possible; i++) {
        if (!holds[i].parked && es_tpu_hold_park(&holds[i])) {
            holds[i].parked = true;
            parked++;
        }
    }
    for (uint32_t i = 0; i < count; i++)
        possible &= holds[i].parked;
    es_lock_give(&lock);
    for (; parked > 0; parked--)
        es_tpu_leave();
    errno = error;
    return possible;
}

int es_tpu_unpark(void) {
    uint64_t end_ns = 0;
    int fresh = 0;

    es_lock_take(&lock);
    for (uint32_t i = 0; i < count && fresh >= 0; i++) {
        const int result = holds[i].parked ? es_tpu_hold_unpark(&holds[i], &end_ns) : 0;

        if (result >= 0 && holds[i].parked) {
            holds[i].parked = false;
            es_tpu_keep();
        }
        fresh = result < 0 ? result : fresh | result;
    }
    es_lock_give(&lock);
    return fresh;
}
