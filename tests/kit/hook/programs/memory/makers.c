/* Two threads retain the primary context of contexts.c's device: the second comes while the first makes it. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "driver_api.h"

void contexts_on_making(void (*call)(void));
int contexts_made(void);

static pthread_t second;
static int thread, over; /* atomic: the second's, once it is about to call; it has its answer */
static CUresult answered;

static void *retain(void *nothing) {
    CUcontext context;

    __atomic_store_n(&thread, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
    answered = cuDevicePrimaryCtxRetain(&context, 0);
    __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
    return nothing;
}

/* Whether a thread of this process waits for something. */
static int sleeps(int number) {
    char path[64], state = '?';
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/stat", number);
    file = fopen(path, "r");
    if (file != NULL && fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = '?';
    if (file != NULL)
        (void)fclose(file);
    return state == 'S';
}

/* Until it has its answer, or waits for who makes the context. */
static void second_comes(void) {
    int number;

    contexts_on_making(NULL);
    if (pthread_create(&second, NULL, retain, NULL) != 0)
        return;
    do {
        (void)sched_yield();
        number = __atomic_load_n(&thread, __ATOMIC_ACQUIRE);
    } while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE) && (number == 0 || !sleeps(number)));
}

int main(void) {
    CUcontext context;
    CUresult first;
    char line[8];

    contexts_on_making(second_comes);
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
