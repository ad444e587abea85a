/* Two threads, of which one ends or captures what the other has submitted to. argv[1] says what; the threads take turns, so
 * that each run is the same. Whatever the driver refuses is printed. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver_api.h"
#include "must.h"
#include "workload/spin.h"

/* Now and then the hook marks the end of what a thread submitted before it waits: then nothing is open. */
enum { ROUNDS = 40, US = 1000 };

static CUcontext context;
static CUfunction spin;
static CUstream stream;
static sem_t yours, mine;
static void (*other)(void);

static void launch(CUstream where) {
    unsigned long long ns = 50 * US;
    void *parameters[] = {&ns};

    MUST(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, where, parameters, NULL));
}

static void load(void) {
    CUmodule module;

    MUST(cuModuleLoadData(&module, SPIN_PTX));
    MUST(cuModuleGetFunction(&spin, module, "spin"));
}

static void *run_other(void *nothing) {
    for (int round = 0; round < ROUNDS; round++) {
        sem_wait(&yours);
        MUST(cuCtxSetCurrent(context));
        other();
        sem_post(&mine);
    }
    return nothing;
}

/* The other thread does its part now. */
static void pass(void) {
    sem_post(&yours);
    sem_wait(&mine);
}

static void end_stream(void) {
    MUST(cuStreamSynchronize(stream));
    MUST(cuStreamDestroy_v2(stream));
}

/* It waits for an event in a stream that another thread has ended. */
static void streams(CUevent event) {
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    launch(stream);
    MUST(cuEventRecord(event, stream));
    pass();
    MUST(cuEventSynchronize(event));
}

static void begin_capture(void) {
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    launch(stream);
}

/* It waits for an event in a stream that another thread captures by now. */
static void captures(CUevent event) {
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    launch(stream);
    MUST(cuEventRecord(event, stream));
    pass();
    MUST(cuThreadExchangeStreamCaptureMode(&(CUstreamCaptureMode){CU_STREAM_CAPTURE_MODE_RELAXED}));
    MUST(cuEventSynchronize(event));
}

static void end_capture(void) {
    CUgraph graph;

    MUST(cuStreamEndCapture(stream, &graph));
    MUST(cuGraphDestroy(graph));
    MUST(cuStreamDestroy_v2(stream));
}

static void end_context(void) {
    MUST(cuStreamSynchronize(stream));
    MUST(cuCtxDestroy_v2(context));
    MUST(cuCtxCreate_v2(&context, 0, 0));
    load();
}

/* What it has submitted to is ended with its context, and another context made. */
static void contexts(void) {
    MUST(cuCtxSetCurrent(context));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    launch(stream);
    launch(stream);
    pass();
    MUST(cuCtxSetCurrent(context));
    launch(NULL);
    MUST(cuCtxSynchronize());
}

int main(int argc, char **argv) {
    pthread_t thread;
    CUevent event;

    sem_init(&yours, 0, 0);
    sem_init(&mine, 0, 0);
    MUST(cuInit(0));
    MUST(cuCtxCreate_v2(&context, 0, 0));
    load();
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    pthread_create(&thread, NULL, run_other, NULL);
    for (int round = 0; round < ROUNDS && argc > 1; round++) {
        if (strcmp(argv[1], "context") == 0) {
            other = end_context;
            contexts();
        } else if (strcmp(argv[1], "stream") == 0) {
            other = end_stream;
            streams(event);
        } else {
            other = round % 2 == 0 ? begin_capture : end_capture;
            if (round % 2 == 0)
                captures(event);
            else
                pass();
        }
    }
    pthread_join(thread, NULL);
    printf("done\n");
    return 0;
}
