#include <stdlib.h>

#include "odd.h"

void streams(void) {
    CUstream all[200];

    start();
    for (int index = 0; index < 200; index++)
        all[index] = make_stream(index % 2 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT);
    for (int round = 0; round < 5; round++)
        for (int index = 0; index < 200; index++)
            MUST(launch(spin, 20 * US, all[index]));
    for (int index = 0; index < 200; index++) {
        if (index % 3)
            MUST(cuStreamSynchronize(all[index]));
        MUST(cuStreamDestroy_v2(all[index]));
    }
    SAY(cuCtxSynchronize());
}

void events(void) {
    enum { EVENTS = 10000 };
    CUevent *all = calloc(EVENTS, sizeof *all);
    float ms;
    int negative = 0;

    start();
    for (int index = 0; index < EVENTS; index++) {
        all[index] = make_event(index % 4 == 3 ? CU_EVENT_BLOCKING_SYNC : CU_EVENT_DEFAULT);
        if (index % 20 == 0)
            MUST(launch(spin, 20 * US, NULL));
        MUST(cuEventRecord(all[index], NULL));
    }
    MUST(cuEventSynchronize(all[EVENTS - 1]));
    for (int index = 1; index < EVENTS; index++) {
        MUST(cuEventQuery(all[index]));
        MUST(cuEventElapsedTime(&ms, all[index - 1], all[index]));
        negative += ms < 0;
    }
    for (int index = 0; index < EVENTS; index++)
        MUST(cuEventDestroy_v2(all[index]));
    free(all);
    printf("negative: %d\n", negative);
}

/* Events that nobody recorded, or that are destroyed while they are awaited. */
void loose_events(void) {
    CUevent event;
    float ms;

    start();
    event = make_event(CU_EVENT_DEFAULT);
    SAY(cuEventQuery(event));
    SAY(cuEventSynchronize(event));
    SAY(cuStreamWaitEvent(NULL, event, 0));
    SAY(cuEventElapsedTime(&ms, event, event));
    MUST(launch(spin, 300 * MS, NULL));
    MUST(cuEventRecord(event, NULL));
    SAY(cuEventQuery(event));
    SAY(cuEventElapsedTime(&ms, event, event));
    SAY(cuEventDestroy_v2(event));
    event = make_event(CU_EVENT_DISABLE_TIMING);
    MUST(cuEventRecord(event, NULL));
    SAY(cuEventSynchronize(event));
    SAY(cuEventElapsedTime(&ms, event, event));
    SAY(cuStreamQuery(NULL));
}

void chains(void) {
    enum { LINKS = 64, ROUNDS = 10 };
    CUstream all[LINKS];
    CUevent begin, end, step[LINKS];
    float ms;

    start();
    begin = make_event(CU_EVENT_DEFAULT);
    end = make_event(CU_EVENT_DEFAULT);
    for (int index = 0; index < LINKS; index++) {
        all[index] = make_stream(CU_STREAM_NON_BLOCKING);
        step[index] = make_event(CU_EVENT_DISABLE_TIMING);
    }
    MUST(cuEventRecord(begin, all[0]));
    for (int number = 0; number < LINKS * ROUNDS; number++) {
        int index = number % LINKS;

        if (number)
            MUST(cuStreamWaitEvent(all[index], step[(number - 1) % LINKS], 0));
        MUST(launch(spin, 50 * US, all[index]));
        MUST(cuEventRecord(step[index], all[index]));
    }
    MUST(cuEventRecord(end, all[LINKS - 1]));
    MUST(cuEventSynchronize(end));
    MUST(cuEventElapsedTime(&ms, begin, end));
    printf("one after the other: %d\n", ms >= 0.05f * LINKS * ROUNDS);
}

/* The legacy stream waits for blocking streams and they for it; streams that do not block and threads' own do not. */
void default_streams(void) {
    CUstream blocking, free_one;
    CUevent event;

    start();
    blocking = make_stream(CU_STREAM_DEFAULT);
    free_one = make_stream(CU_STREAM_NON_BLOCKING);
    event = make_event(CU_EVENT_DEFAULT);
    for (int round = 0; round < 20; round++) {
        MUST(launch(spin, 100 * US, blocking));
        MUST(launch(spin, 100 * US, free_one));
        MUST(launch(spin, 100 * US, NULL));
        MUST(launch(spin, 100 * US, CU_STREAM_LEGACY));
        MUST(launch(spin, 100 * US, CU_STREAM_PER_THREAD));
        MUST(cuEventRecord(event, NULL));
        MUST(cuStreamSynchronize(CU_STREAM_LEGACY));
        MUST(cuEventQuery(event));
        MUST(cuStreamQuery(blocking));
        MUST(cuStreamSynchronize(CU_STREAM_PER_THREAD));
        MUST(cuStreamQuery(CU_STREAM_PER_THREAD));
    }
    SAY(cuStreamSynchronize(free_one));
}
