#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include "manners.h"

static void nothing_to_do(int number) { (void)number; }

void storm(void) {
    const struct itimerval each_ms = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    const struct sigaction action = {.sa_handler = nothing_to_do};

    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &each_ms, NULL);
    start();
    for (int i = 0; i < 20; i++)
        work();
    setitimer(ITIMER_REAL, &never, NULL);
}

void storm_at_gate(void) {
    const struct itimerval each_ms = {{0, 1000}, {0, 1000}};
    const struct sigaction action = {.sa_handler = nothing_to_do};

    start();
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &each_ms, NULL);
    GOOD(launch(10));
}

static void launch_in_handler(int number) {
    (void)number;
    GOOD(launch(10));
    GOOD(cuCtxSynchronize());
}

static void *on_small_signal_stack(void *nothing) {
    static char place[16384];
    const stack_t stack = {.ss_sp = place, .ss_size = sizeof(place)};
    const struct sigaction action = {.sa_handler = launch_in_handler, .sa_flags = SA_ONSTACK};

    MUST(sigaltstack(&stack, NULL) == 0);
    GOOD(cuCtxSetCurrent(context));
    sigaction(SIGUSR1, &action, NULL);
    MUST(raise(SIGUSR1) == 0);
    return nothing;
}

static void *work_there(void *nothing) {
    GOOD(cuCtxSetCurrent(context));
    work();
    return nothing;
}

void small_stacks(void) {
    start();
    /* Room for the thread-local data of all libraries, which stands on it too. */
    in_thread(work_there, PTHREAD_STACK_MIN + 16384);
    in_thread(on_small_signal_stack, 0);
    work();
}
