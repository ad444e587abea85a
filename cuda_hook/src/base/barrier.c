#include "base/barrier.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/tools/lock.h"

enum { SETTLED_NS = 100 * 1000 }; /* after that, in place of a barrier, what a thread wrote is taken to be seen */

static bool barrier(void) { return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0; }

void es_barrier_everywhere(void) {
    static const uint32_t nobody;
    const int error = errno;

    /* A process asks for it once; a forked one anew. */
    if (!barrier() && (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0 || !barrier())) {
        /* An older kernel, or a sandbox. What a core has written is seen by others within a microsecond or so. */
        es_sleep_on(&nobody, 0, SETTLED_NS);
    }
    errno = error;
}
