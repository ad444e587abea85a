#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "manners.h"

static void *launch_and_leave(void *nothing) {
    GOOD(cuCtxSetCurrent(context));
    for (int i = 0; i < 5; i++)
        GOOD(launch(200));
    return nothing;
}

static void launch_late(void *nothing) {
    (void)nothing;
    GOOD(launch(10));
    GOOD(cuCtxSynchronize());
}

static pthread_key_t key;

static void *with_late_launch(void *nothing) {
    GOOD(cuCtxSetCurrent(context));
    GOOD(launch(10));
    MUST(pthread_setspecific(key, &key) == 0);
    return nothing;
}

static void *until_cancelled(void *nothing) {
    CUdeviceptr block;

    GOOD(cuCtxSetCurrent(context));
    for (;;) {
        GOOD(launch(10));
        GOOD(cuMemAlloc_v2(&block, 1 << 20));
        GOOD(cuMemFree_v2(block));
        pthread_testcancel();
    }
    return nothing;
}

static pid_t fetching;

static void *fetch_slowly(void *nothing) {
    CUdeviceptr block;
    char byte;

    GOOD(cuCtxSetCurrent(context));
    GOOD(cuMemAlloc_v2(&block, 1));
    GOOD(launch(500000));
    __atomic_store_n(&fetching, gettid(), __ATOMIC_RELEASE);
    GOOD(cuMemcpyDtoH_v2(&byte, block, 1));
    return nothing;
}

/* Does the thread sleep in the driver? */
static int sleeps(pid_t thread) {
    char path[64];
    int number = -1;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)thread);
    file = fopen(path, "r");
    MUST(file != NULL);
    if (fscanf(file, "%d", &number) != 1)
        number = -1;
    (void)fclose(file);
    return number == SYS_clock_nanosleep;
}

/* A thread that ends while it waits within the driver for its result. */
void cancelled_in_driver(void) {
    pthread_t thread;

    start();
    MUST(pthread_create(&thread, NULL, fetch_slowly, NULL) == 0);
    while (__atomic_load_n(&fetching, __ATOMIC_ACQUIRE) == 0 || !sleeps(fetching))
        ;
    MUST(pthread_cancel(thread) == 0 && pthread_join(thread, NULL) == 0);
    wait_for_word("waiting");
}

void left_batch(void) {
    start();
    in_thread(launch_and_leave, 0);
    wait_for_word("waiting");
}

void leaving_threads(void) {
    start();
    MUST(pthread_key_create(&key, launch_late) == 0);
    for (int i = 0; i < 20; i++) {
        in_thread(launch_and_leave, 0);
        in_thread(with_late_launch, 0);
    }
    work();
}

void cancelled_threads(void) {
    pthread_t thread;

    start();
    for (int i = 0; i < 60; i++) {
        MUST(pthread_create(&thread, NULL, until_cancelled, NULL) == 0);
        usleep((useconds_t)(i * 97 % 3000));
        MUST(pthread_cancel(thread) == 0 && pthread_join(thread, NULL) == 0);
        GOOD(launch(10));
    }
    work();
}
