#include "odd.h"

static void *launcher(void *data) {
    long failed = 0;
    CUstream stream;

    (void)data;
    MUST(cuCtxSetCurrent(context));
    stream = make_stream(CU_STREAM_NON_BLOCKING);
    for (int number = 0; number < 100; number++) {
        failed += launch(spin, 50 * US, stream) != CUDA_SUCCESS;
        if (number % 10 == 9)
            failed += cuStreamSynchronize(stream) != CUDA_SUCCESS;
    }
    MUST(cuStreamDestroy_v2(stream));
    return (void *)failed;
}

void threads(void) {
    start();
    printf("failed: %d\n", in_threads(16, launcher));
    SAY(cuCtxSynchronize());
}

static void *leaver(void *data) {
    (void)data;
    MUST(cuCtxSetCurrent(context));
    return (void *)(long)(launch(spin, MS, CU_STREAM_PER_THREAD) != CUDA_SUCCESS);
}

/* Threads that end while their work is queued on their own default streams. */
void leaving_threads(void) {
    start();
    for (int round = 0; round < 5; round++)
        printf("failed: %d\n", in_threads(8, leaver));
    SAY(cuCtxSynchronize());
}

/* Each thread has a stream: the first one's kernels are long, the others' short, and run beside them on a device that can. */
static void *neighbour(void *data) {
    const long index = (long)data;
    long failed = 0;
    CUstream stream;

    MUST(cuCtxSetCurrent(context));
    stream = make_stream(CU_STREAM_NON_BLOCKING);
    for (int number = 0; number < (index == 0 ? 20 : 400); number++) {
        failed += launch(spin, index == 0 ? 5 * MS : 50 * US, stream) != CUDA_SUCCESS;
        if (number % 3 != 1)
            failed += cuStreamSynchronize(stream) != CUDA_SUCCESS;
    }
    failed += cuStreamSynchronize(stream) != CUDA_SUCCESS;
    MUST(cuStreamDestroy_v2(stream));
    return (void *)failed;
}

void neighbours(void) {
    start();
    printf("failed: %d\n", in_threads(4, neighbour));
    SAY(cuCtxSynchronize());
}
