/* The beginning of a run. */
#include <signal.h>
#include <unistd.h>

#include "machine.h"

struct vt_config config;

/* A forked child is a real process: nothing in it is simulated. */
static void forked(void) { self = NULL; }

void vt_init(const struct vt_config *wanted) {
    static bool begun;

    if (begun)
        die(VT_IMPOSSIBLE, "vt_init a second time: a run has a real process of its own");
    begun = true;
    config = *wanted;
    chance_begin(config.seed);
    (void)signal(SIGPIPE, SIG_IGN); /* it would end all simulated processes */
    (void)pthread_atfork(NULL, NULL, forked);
    budget_begin(config.budget_s);
}

/* A child of vfork runs on its parent's memory, and its calls would be taken for points of the simulated thread. */
pid_t vfork(void) { return fork(); }
