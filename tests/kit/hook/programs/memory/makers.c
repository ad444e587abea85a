/* Two threads retain the primary context of contexts.c's device: the second comes while the first makes it. */
#include <stdio.h>

#include "driver_api.h"
#include "second.h"

void contexts_on_making(void (*call)(void));
int contexts_made(void);

static CUresult answered;

static void *retain(void *nothing) {
    CUcontext context;

    second_calls();
    answered = cuDevicePrimaryCtxRetain(&context, 0);
    second_called();
    return nothing;
}

static void second_retains(void) {
    contexts_on_making(NULL);
    second_comes(retain);
}

int main(void) {
    CUcontext context;
    CUresult first;
    char line[8];

    contexts_on_making(second_retains);
    (void)cuInit(0);
    first = cuDevicePrimaryCtxRetain(&context, 0);
    (void)pthread_join(second, NULL);
    printf("retained %d %d, made %d\n", (int)first, (int)answered, contexts_made());
    (void)fflush(stdout);
    (void)fgets(line, sizeof(line), stdin);
    printf("released %d", (int)cuDevicePrimaryCtxRelease_v2(0));
    printf(" %d\n", (int)cuDevicePrimaryCtxRelease_v2(0));
    (void)fflush(stdout);
    (void)fgets(line, sizeof(line), stdin);
    return 0;
}
