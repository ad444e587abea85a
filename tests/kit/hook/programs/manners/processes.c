#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <unistd.h>

#include "manners.h"

void plain(void) {
    start();
    work();
}

void spawn(void) {
    char *const arguments[] = {"true", NULL};
    pid_t child;

    start();
    for (int i = 0; i < 5; i++) {
        GOOD(launch(100));
        MUST(posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) == 0);
        MUST(ended(child) == 0);
        GOOD(launch(100));
        child = vfork();
        if (child == 0) {
            execv("/bin/true", arguments);
            _exit(9);
        }
        MUST(ended(child) == 0);
    }
    work();
}

static volatile int over;

static void *keep_busy(void *nothing) {
    CUdeviceptr block;

    GOOD(cuCtxSetCurrent(context));
    while (!over) {
        GOOD(launch(20));
        GOOD(cuMemAlloc_v2(&block, 4096));
        GOOD(cuMemFree_v2(block));
    }
    return nothing;
}

/* Children forked at any moment of other threads' calls; they try what they may not, and end as programs end. */
void fork_anywhen(void) {
    pthread_t threads[2];

    start();
    for (int i = 0; i < 2; i++)
        MUST(pthread_create(&threads[i], NULL, keep_busy, NULL) == 0);
    for (int i = 0; i < 40; i++) {
        const pid_t child = fork();

        MUST(child >= 0);
        if (child == 0) {
            CUdeviceptr block;
            size_t bytes;

            alarm(10);
            (void)launch(10);
            (void)cuMemGetInfo_v2(&bytes, &bytes);
            (void)cuMemAlloc_v2(&block, 1 << 20);
            (void)cuMemFree_v2(block);
            (void)cuStreamSynchronize(NULL);
            (void)cuCtxSynchronize();
            (void)cuDevicePrimaryCtxRelease_v2(0);
            (void)cuDevicePrimaryCtxRetain(&context, 0);
            (void)launch(10);
            exit(0);
        }
        MUST(ended(child) == 0);
    }
    over = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    work();
}

/* The worker is forked in a slice, and is still there when its parent has ended. */
void leave_worker(void) {
    start();
    GOOD(launch(1000));
    if (fork() == 0) {
        (void)close(STDOUT_FILENO);
        (void)close(STDERR_FILENO);
        (void)alarm(20);
        (void)pause();
        _exit(0);
    }
    GOOD(launch(1000));
}
