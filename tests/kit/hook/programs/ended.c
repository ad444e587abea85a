/* Two threads, of which one ends or captures what the other has submitted to. argv[1] says what; the threads take turns, so
 * that each run is the same. Whatever the driver refuses is printed. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver_api.h"
#include "must.h"
#include "workload/spin.h"

/* Now and then the hook marks the end of what a thread submitted before it waits: then nothing is open. */
enum { ROUNDS = 40, US = 1000, SPREADS = 8, SPREAD_NS = 2000 * US };

static CUcontext context;
static CUfunction spin;
static CUstream stream, origin;
static CUevent forked, joined;
static int spreads; /* so often it has */
static sem_t yours, mine, waited;
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

static void begin_to_spread(void) {
    MUST(cuStreamCreate(&origin, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamBeginCapture_v2(origin, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    MUST(cuEventRecord(forked, origin));
}

/* Now earlier, now later while the other one waits and the hook asks the stream whether it is done. */
static void spread(void) {
    const struct timespec later = {0, spreads++ % SPREADS * SPREAD_NS};
    CUgraph graph;

    (void)nanosleep(&later, NULL);
    MUST(cuStreamWaitEvent(stream, forked, 0));
    launch(stream);
    sem_wait(&waited);
    MUST(cuEventRecord(joined, stream));
    MUST(cuStreamWaitEvent(origin, joined, 0));
    MUST(cuStreamEndCapture(origin, &graph));
    MUST(cuGraphDestroy(graph));
    MUST(cuStreamDestroy_v2(origin));
    MUST(cuStreamDestroy_v2(stream));
}

/* It waits for an event in a stream that another thread makes follow its capture meanwhile. */
static void follows(CUevent event) {
    other = begin_to_spread;
    pass();
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    launch(stream);
    MUST(cuEventRecord(event, stream));
    other = spread;
    sem_post(&yours);
    MUST(cuThreadExchangeStreamCaptureMode(&(CUstreamCaptureMode){CU_STREAM_CAPTURE_MODE_RELAXED}));
    MUST(cuEventSynchronize(event));
    sem_post(&waited);
    sem_wait(&mine);
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
    sem_init(&waited, 0, 0);
    MUST(cuInit(0));
    MUST(cuCtxCreate_v2(&context, 0, 0));
    load();
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventCreate(&forked, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventCreate(&joined, CU_EVENT_DISABLE_TIMING));
    pthread_create(&thread, NULL, run_other, NULL);
    for (int round = 0; round < ROUNDS && argc > 1; round++) {
        if (strcmp(argv[1], "context") == 0) {
            other = end_context;
            contexts();
        } else if (strcmp(argv[1], "stream") == 0) {
            other = end_stream;
            streams(event);
        } else if (strcmp(argv[1], "spread") == 0) {
            if (round % 2 == 0)
                follows(event);
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
