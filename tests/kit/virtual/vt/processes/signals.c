/* Signals. Simulated processes have none; what they block is their own affair, and the one kernel thread that all of
 * them run on blocks nothing for it: one thread's mask would be the next one's. */
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#include "machine.h"

static sigset_t masks[THREADS];

static int change_mask(int how, const sigset_t *set, sigset_t *before) {
    sigset_t *mask = &masks[self->id];
    unsigned long bits, changed;

    if (before != NULL)
        *before = *mask;
    if (set == NULL)
        return 0;
    memcpy(&bits, mask, sizeof(bits));
    memcpy(&changed, set, sizeof(changed));
    bits = how == SIG_BLOCK ? bits | changed : how == SIG_UNBLOCK ? bits & ~changed : changed;
    memcpy(mask, &bits, sizeof(bits));
    return 0;
}

int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict before) {
    return SIMULATED() ? change_mask(how, set, before) : REAL(sigprocmask)(how, set, before);
}

int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict before) {
    return SIMULATED() ? change_mask(how, set, before) : REAL(pthread_sigmask)(how, set, before);
}
