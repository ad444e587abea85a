#include <pthread.h>
#include <unistd.h>

#include "odd.h"

static CUgraphExec five_kernels(CUstream stream) {
    CUgraph graph;
    CUgraphExec executable;
    size_t nodes = 0;

    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    for (int number = 0; number < 5; number++)
        MUST(launch(spin, 20 * US, stream));
    MUST(cuStreamEndCapture(stream, &graph));
    MUST(cuGraphGetNodes(graph, NULL, &nodes));
    printf("nodes: %zu\n", nodes);
    MUST(cuGraphInstantiateWithFlags(&executable, graph, 0));
    MUST(cuGraphDestroy(graph));
    return executable;
}

void graphs(void) {
    CUstream stream[3];
    CUgraphExec executable;

    start();
    for (int index = 0; index < 3; index++)
        stream[index] = make_stream(CU_STREAM_NON_BLOCKING);
    executable = five_kernels(stream[0]);
    MUST(cuGraphUpload(executable, stream[0]));
    for (int number = 0; number < 200; number++)
        MUST(cuGraphLaunch(executable, stream[number % 3]));
    SAY(cuGraphExecDestroy(executable));
    SAY(cuCtxSynchronize());
}

static volatile int capturing = 1;

static void *synchronizer(void *data) {
    CUstream stream;
    long failed = 0;

    (void)data;
    MUST(cuCtxSetCurrent(context));
    stream = make_stream(CU_STREAM_NON_BLOCKING);
    while (__atomic_load_n(&capturing, __ATOMIC_ACQUIRE)) {
        failed += launch(spin, 200 * US, stream) != CUDA_SUCCESS;
        failed += cuStreamSynchronize(stream) != CUDA_SUCCESS;
    }
    return (void *)failed;
}

/* One thread captures again and again while two others launch and wait; a capture of any mode stays whole. */
void capture_beside_waits(void) {
    pthread_t others[2];
    void *failed;
    CUstream stream;

    start();
    stream = make_stream(CU_STREAM_NON_BLOCKING);
    for (int index = 0; index < 2; index++)
        pthread_create(&others[index], NULL, synchronizer, NULL);
    for (int round = 0; round < 30; round++) {
        CUgraph graph;
        size_t nodes;

        MUST(cuStreamBeginCapture_v2(stream, (CUstreamCaptureMode)(round % 3)));
        for (int number = 0; number < 20; number++) {
            MUST(launch(spin, US, stream));
            usleep(100);
        }
        MUST(cuStreamEndCapture(stream, &graph));
        MUST(cuGraphGetNodes(graph, NULL, &nodes));
        if (nodes != 20)
            printf("nodes: %zu\n", nodes);
        MUST(cuGraphDestroy(graph));
    }
    __atomic_store_n(&capturing, 0, __ATOMIC_RELEASE);
    for (int index = 0; index < 2; index++) {
        pthread_join(others[index], &failed);
        printf("failed: %ld\n", (long)failed);
    }
}

/* What a capture forbids, it forbids with the hook as without. */
void broken_capture(void) {
    CUstream stream;
    CUgraph graph = NULL;
    CUdeviceptr memory;

    start();
    stream = make_stream(CU_STREAM_NON_BLOCKING);
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    MUST(launch(spin, US, stream));
    SAY(cuStreamSynchronize(stream));
    SAY(launch(spin, US, stream));
    SAY(cuStreamEndCapture(stream, &graph));
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    SAY(cuMemAlloc_v2(&memory, 1 << 20));
    SAY(cuStreamEndCapture(stream, &graph));
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    SAY(cuMemAlloc_v2(&memory, 1 << 20));
    SAY(cuStreamQuery(stream));
    SAY(cuStreamEndCapture(stream, &graph));
    SAY(launch(spin, US, stream));
    SAY(cuStreamSynchronize(stream));
}
