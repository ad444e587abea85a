#include "tpu/next.h"

#include <errno.h>

#include "core/tools/clock.h"
#include "core/tools/lock.h"
#include "loader/lookups.h"
#include "tpu/tpu.h"

enum { BUSY_STEP_NS = 5 * 1000 * 1000 };

/* Two threads that look it up at once find the same. */
void *es_next(enum es_next which, const char *name) {
    static void *nexts[ES_NEXTS];
    void *known = __atomic_load_n(&nexts[which], __ATOMIC_RELAXED);

    if (__builtin_expect(known == NULL, 0)) {
        known = es_next_symbol(name);
        __atomic_store_n(&nexts[which], known, __ATOMIC_RELAXED);
    }
    return known;
}

int es_next_open(const char *path, int flags, mode_t mode) {
    return ES_NEXT(open, open_function, (path, flags, mode), syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

int es_next_ioctl(int fd, unsigned long request, void *argument) {
    return ES_NEXT(ioctl, ioctl_function, (fd, request, argument), syscall(SYS_ioctl, fd, request, argument));
}

/* The slice is this process's, but who had the device before may not be out of it: a child that was forked while it was
 * open, a mapping, a process that no hook is in. Nothing tells when it is, so it is asked for again. EPERM is what Coral's
 * driver says then (gasket_open in google/gasket-driver); USB says EBUSY. */
bool es_tpu_busy(int result, uint64_t *end_ns) {
    static const uint32_t nobody;

    if (result >= 0 || (errno != EBUSY && errno != EPERM))
        return false;
    if (*end_ns == 0)
        *end_ns = es_now_ns() + es_tpu_patience_ns();
    if (es_now_ns() >= *end_ns) {
        if (!es_tpu_unshared())
            return false;
        /* With no manager nobody says whose turn it is, but nothing fails for that. It may be back. */
        es_tpu_leave();
        (void)es_tpu_enter();
        *end_ns = 0;
    }
    es_sleep_on(&nobody, 0, BUSY_STEP_NS);
    return true;
}
