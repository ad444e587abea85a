#include "base/life.h"

#include <stdint.h>

#include "base/kernel.h"
#include "core/tools/lock.h"
#include "wire_checks.h"

enum { NOBODY, BEGINNING, BEGUN }; /* of `stage` */
enum { WIPED, FORGETTING, ALIVE }; /* of *mark */
enum { WAIT_NS = 10 * 1000 * 1000, WAITS = 1000 };

static uint32_t stage; /* futex */
static uint32_t *mark; /* in a page that is zero in a forked child (Linux 4.14) */
static pid_t process;  /* where there is no such page: whose memory this was; 0 while a child forgets */

static bool forked(void) {
    const uint32_t *page = __atomic_load_n(&mark, __ATOMIC_ACQUIRE);

    if (__atomic_load_n(&stage, __ATOMIC_ACQUIRE) == NOBODY)
        return false;
    if (page != NULL)
        return __atomic_load_n(page, __ATOMIC_ACQUIRE) != ALIVE;
    return __atomic_load_n(&process, __ATOMIC_ACQUIRE) != es_kernel_process();
}

bool es_life_apart(void) { return es_locks_held != 0 || forked(); }

/* By the one thread that begins. */
static void mark_alive(void) {
    if (mark == NULL) {
        uint32_t *page = es_kernel_page_wiped_by_fork(ES_PAGE_BYTES);

        if (page == NULL)
            return;
        *page = ALIVE;
        __atomic_store_n(&mark, page, __ATOMIC_RELEASE);
    }
    __atomic_store_n(mark, ALIVE, __ATOMIC_RELEASE);
}

bool es_life_begin(void) {
    uint32_t nobody = NOBODY;

    if (__builtin_expect(__atomic_load_n(&stage, __ATOMIC_ACQUIRE) == BEGUN, 1) || es_locks_held != 0)
        return false;
    es_locks_hold();
    /* Before anything says that this process has begun: a child that is forked then knows that it was its parent. */
    if (__atomic_load_n(&stage, __ATOMIC_ACQUIRE) == NOBODY)
        __atomic_store_n(&process, es_kernel_process(), __ATOMIC_RELEASE);
    if (__atomic_compare_exchange_n(&stage, &nobody, BEGINNING, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
        mark_alive();
        return true;
    }
    es_locks_drop();
    while (__atomic_load_n(&stage, __ATOMIC_ACQUIRE) == BEGINNING && !forked())
        es_sleep_on(&stage, BEGINNING, WAIT_NS);
    return false;
}

void es_life_begun(void) {
    __atomic_store_n(&stage, BEGUN, __ATOMIC_RELEASE);
    es_locks_drop();
    es_wake_all(&stage);
}

bool es_life_forget(void) {
    uint32_t wiped = WIPED;
    pid_t parent, self;

    if (__builtin_expect(!forked(), 1) || es_locks_held != 0)
        return false;
    self = es_kernel_process();
    parent = __atomic_load_n(&process, __ATOMIC_ACQUIRE);
    es_locks_hold();
    if (mark != NULL ? __atomic_compare_exchange_n(mark, &wiped, FORGETTING, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)
                     : parent != 0 && parent != self &&
                           __atomic_compare_exchange_n(&process, &parent, 0, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return true;
    es_locks_drop();
    for (int i = 0; i < WAITS && forked(); i++)
        es_sleep_on(&stage, BEGUN, WAIT_NS);
    return false;
}

void es_life_forgotten(void) {
    __atomic_store_n(&stage, NOBODY, __ATOMIC_RELEASE);
    es_locks_drop();
    es_wake_all(&stage);
}
