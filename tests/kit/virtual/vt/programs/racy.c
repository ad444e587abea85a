/* A counter that two threads raise by a load and a store. Compiled with -fsanitize=thread: both are points then. */
#include <stddef.h>

#include "programs.h"

enum { ROUNDS = 200 };

static int counter;
static struct vt_sem done;

static void raise(void *argument) {
    (void)argument;
    for (int i = 0; i < ROUNDS; i++) {
        const int seen = __atomic_load_n(&counter, __ATOMIC_SEQ_CST);

        __atomic_store_n(&counter, seen + 1, __ATOMIC_SEQ_CST);
    }
    vt_sem_post(&done);
}

void lost_update(void) {
    (void)vt_spawn(0, "raises", raise, NULL);
    (void)vt_spawn(0, "raises too", raise, NULL);
    vt_sem_wait(&done);
    vt_sem_wait(&done);
    say("lost", 2 * ROUNDS - counter);
}
