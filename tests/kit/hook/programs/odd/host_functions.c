#include <pthread.h>
#include <semaphore.h>

#include "odd.h"

static sem_t called, launched;

static void signal_other(void *data) {
    (void)data;
    sem_post(&called);
}

static void signal_and_wait(void *data) {
    (void)data;
    sem_post(&called);
    sem_wait(&launched);
}

static void *answers(void *data) {
    long failed = 0;
    CUstream stream;

    MUST(cuCtxSetCurrent(context));
    stream = make_stream(CU_STREAM_NON_BLOCKING);
    for (long round = 0; round < (long)data; round++) {
        sem_wait(&called);
        failed += launch(spin, 50 * US, stream) != CUDA_SUCCESS;
        sem_post(&launched);
    }
    failed += cuStreamSynchronize(stream) != CUDA_SUCCESS;
    return (void *)failed;
}

static void host_functions(CUhostFn function, long rounds) {
    pthread_t other;
    void *failed;
    CUstream stream;

    start();
    sem_init(&called, 0, 0);
    sem_init(&launched, 0, 0);
    stream = make_stream(CU_STREAM_NON_BLOCKING);
    pthread_create(&other, NULL, answers, (void *)rounds);
    for (int round = 0; round < rounds; round++) {
        MUST(launch(spin, 50 * US, stream));
        MUST(cuLaunchHostFunc(stream, function, NULL));
        MUST(launch(spin, 50 * US, stream));
    }
    SAY(cuStreamSynchronize(stream));
    pthread_join(other, &failed);
    printf("failed: %ld\n", (long)failed);
}

void signalling_host_functions(void) { host_functions(signal_other, 50); }

/* The stream goes on only when another thread has launched. */
void blocking_host_functions(void) { host_functions(signal_and_wait, 20); }
