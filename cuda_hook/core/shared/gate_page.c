#include "core/shared/gate_page.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/tools/clock.h"

uint32_t es_gate_open_word(uint32_t number, int contended) {
    return number << ES_GATE_NUMBER_SHIFT | (contended ? ES_GATE_CONTENDED : 0) | ES_GATE_HELD;
}

uint32_t es_gate_number(uint32_t word) { return word >> ES_GATE_NUMBER_SHIFT; }

/* The futex is shared between processes, so it must not be a private one. */
static void store_word(struct es_gate_page *page, uint32_t word) {
    __atomic_store_n(&page->word, word, __ATOMIC_RELEASE);
    (void)syscall(SYS_futex, &page->word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void es_gate_open(struct es_gate_page *page, uint32_t number, int contended, uint64_t now_ns, uint64_t free_at_ns,
                  uint64_t ends_at_ns, uint32_t beside, uint32_t cap_ns) {
    __atomic_store_n(&page->granted_at_ns, now_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&page->free_at_ns, free_at_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&page->ends_at_ns, ends_at_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&page->looks_at_ns, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&page->beside, beside, __ATOMIC_RELAXED);
    __atomic_store_n(&page->cap_ns, cap_ns, __ATOMIC_RELAXED);
    store_word(page, es_gate_open_word(number, contended));
}

void es_gate_prolong(struct es_gate_page *page, uint64_t ends_at_ns) {
    __atomic_store_n(&page->ends_at_ns, ends_at_ns, __ATOMIC_RELAXED);
}

void es_gate_promise(struct es_gate_page *page, uint64_t looks_at_ns) {
    __atomic_store_n(&page->looks_at_ns, looks_at_ns, __ATOMIC_RELAXED);
}

int es_hint_left(const struct es_hint_page *page, uint32_t known, struct es_release *release, uint64_t *drained_at_ns) {
    const uint32_t number = __atomic_load_n(&page->left.header.number, __ATOMIC_ACQUIRE);

    if (number == known)
        return 0;
    *release = page->left;
    release->header.number = number;
    *drained_at_ns = __atomic_load_n(&page->drained_at_ns, __ATOMIC_RELAXED);
    return 1;
}

int es_hint_leave(struct es_hint_page *hint, const struct es_gate_page *gate, const struct es_release *release) {
    const uint64_t looks_at_ns = __atomic_load_n(&gate->looks_at_ns, __ATOMIC_RELAXED);
    const uint64_t drained_at_ns = es_now_ns();

    if (drained_at_ns >= looks_at_ns)
        return 0;
    hint->left.header.kind = release->header.kind;
    hint->left.header.size = release->header.size;
    hint->left.gpu_ns = release->gpu_ns;
    hint->left.flags = release->flags;
    __atomic_store_n(&hint->drained_at_ns, drained_at_ns, __ATOMIC_RELAXED);
    (void)__atomic_exchange_n(&hint->left.header.number, release->header.number, __ATOMIC_SEQ_CST);
    /* Whoever was put aside meanwhile may have missed the look. */
    return es_now_ns() < looks_at_ns;
}

void es_gate_close(struct es_gate_page *page) {
    const uint32_t word = __atomic_load_n(&page->word, __ATOMIC_RELAXED);

    store_word(page, word & ~(uint32_t)(ES_GATE_HELD | ES_GATE_CONTENDED));
}

void es_gate_discard(struct es_gate_page *page) {
    __atomic_store_n(&page->epoch, 0, __ATOMIC_RELAXED);
    es_gate_close(page);
}

uint32_t es_gate_load(const struct es_gate_page *page) { return __atomic_load_n(&page->word, __ATOMIC_ACQUIRE); }

/* Who waits: the manager wakes them all, a client its helper alone. */
enum { WAITERS = 1, HELPER = 2 };

/* With a bit set, the timeout is a point in time, on CLOCK_MONOTONIC. */
static int wait_as(const struct es_gate_page *page, uint32_t seen, uint64_t timeout_ns, uint32_t bits) {
    const uint64_t end_ns = es_now_ns() + timeout_ns;
    const struct timespec until = {.tv_sec = (time_t)(end_ns / 1000000000), .tv_nsec = (long)(end_ns % 1000000000)};

    if (syscall(SYS_futex, &page->word, FUTEX_WAIT_BITSET, seen, &until, NULL, bits) == 0 || errno == EAGAIN)
        return 0;
    return errno;
}

int es_gate_wait(const struct es_gate_page *page, uint32_t seen, uint64_t timeout_ns) {
    return wait_as(page, seen, timeout_ns, WAITERS);
}

int es_gate_park(const struct es_gate_page *page, uint32_t seen, uint64_t timeout_ns) {
    return wait_as(page, seen, timeout_ns, HELPER);
}

int es_gate_call(const struct es_gate_page *page) {
    return (int)syscall(SYS_futex, &page->word, FUTEX_WAKE_BITSET, INT_MAX, NULL, NULL, HELPER);
}
