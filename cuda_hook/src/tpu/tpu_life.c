#include <errno.h>

#include "base/events.h"
#include "base/kernel.h"
#include "core/tools/lock.h"
#include "tpu/tpu.h"
#include "wire_checks.h"

enum { WIPED, FORGETTING, ALIVE }; /* of *mark */

enum { LOOK_NS = 100 * 1000 * 1000 }; /* how often who waits for another thread to forget looks again */

static uint32_t *mark; /* in a page that is zero in a forked child (Linux 4.14) */
static pid_t process;

void es_tpu_life_begin(void) {
    uint32_t *page;

    if (process != 0)
        return;
    page = es_kernel_page_wiped_by_fork(ES_PAGE_BYTES);
    if (page != NULL) {
        *page = ALIVE;
        __atomic_store_n(&mark, page, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&process, es_kernel_process(), __ATOMIC_RELEASE);
}

bool es_tpu_ours(void) {
    const pid_t owner = __atomic_load_n(&process, __ATOMIC_ACQUIRE);
    uint32_t *page = __atomic_load_n(&mark, __ATOMIC_ACQUIRE);
    const int error = errno;
    uint32_t wiped = WIPED;

    if (es_locks_held != 0)
        return false;
    if (owner == 0 || owner == es_kernel_process())
        return page == NULL || __atomic_load_n(page, __ATOMIC_ACQUIRE) == ALIVE || owner == 0;
    /* A child. One made by vfork has its parent's memory, this page included, and must not touch what is the parent's;
     * where the kernel has no such page the two cannot be told apart, and a child has no share. */
    if (page == NULL || __atomic_load_n(page, __ATOMIC_ACQUIRE) == ALIVE)
        return false;
    if (__atomic_compare_exchange_n(page, &wiped, FORGETTING, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
        es_locks_hold();
        es_on_tpu_forked();
        __atomic_store_n(&process, es_kernel_process(), __ATOMIC_RELEASE);
        es_locks_drop();
        __atomic_store_n(page, ALIVE, __ATOMIC_RELEASE);
        es_wake_all(page);
    }
    while (__atomic_load_n(page, __ATOMIC_ACQUIRE) == FORGETTING)
        es_sleep_on(page, FORGETTING, LOOK_NS);
    errno = error;
    return true;
}
