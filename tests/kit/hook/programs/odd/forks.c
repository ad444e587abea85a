#include <sys/wait.h>
#include <unistd.h>

#include "odd.h"

void fork_after(void) {
    int status;
    pid_t child;

    start();
    MUST(launch(spin, 5 * MS, NULL));
    fflush(stdout);
    child = fork();
    if (child == 0) {
        SAY(cuInit(0));
        SAY(launch(spin, MS, NULL));
        SAY(cuCtxSynchronize());
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, &status, 0);
    printf("child: %d\n", status);
    MUST(launch(spin, 5 * MS, NULL));
    SAY(cuCtxSynchronize());
}

void fork_before(void) {
    int status, bad = 0;

    for (int index = 0; index < 4; index++) {
        if (fork() == 0) {
            start();
            for (int number = 0; number < 50; number++)
                MUST(launch(spin, 100 * US, NULL));
            MUST(cuCtxSynchronize());
            _exit(0);
        }
    }
    for (int index = 0; index < 4; index++) {
        wait(&status);
        bad += status != 0;
    }
    printf("bad: %d\n", bad);
}
