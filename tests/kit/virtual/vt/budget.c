/* Ends a run that takes too long in real time, also where a thread turns in a circle without any point. */
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include "machine.h"

#define SIGNAL SIGRTMAX
enum { PATIENCE_S = 2 };

static uint32_t budget_s;

/* The run ends here, so that what a handler must not call can do no harm but hang: then the second signal ends it. */
static void ended(int signal, siginfo_t *info, void *context) {
    static volatile sig_atomic_t begun;
    const ucontext_t *interrupted = context;
    char why[96];

    (void)signal;
    (void)info;
    if (begun++ != 0)
        (void)raw(SYS_exit_group, VT_ENDED_BY_BUDGET, 0, 0, 0, 0, 0);
    (void)snprintf(why, sizeof(why), "the run did not end within its budget of %u s", (unsigned)budget_s);
    die_at(VT_ENDED_BY_BUDGET, why, (const void *)interrupted->uc_mcontext.gregs[REG_RIP]);
}

/* On the kernel thread that simulated threads run on; no other has the interrupted one's stack. */
void budget_begin(uint32_t seconds) {
    struct sigaction action = {.sa_sigaction = ended, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGNAL};
    const struct itimerspec times = {{PATIENCE_S, 0}, {seconds, 0}};
    sigset_t signals;
    timer_t timer;

    if (seconds == 0)
        return;
    budget_s = seconds;
    event._sigev_un._tid = (int)raw(SYS_gettid, 0, 0, 0, 0, 0, 0);
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGNAL);
    (void)sigprocmask(SIG_UNBLOCK, &signals, NULL);
    if (sigaction(SIGNAL, &action, NULL) != 0 || timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
        timer_settime(timer, 0, &times, NULL) != 0)
        die(VT_IMPOSSIBLE, "no timer for the budget");
}
