/* Odd but legal things that CUDA programs do. argv[1] names one of them; it prints what the driver answered, which has
 * to be the same with and without the hook, and with another program on the GPU. Nothing printed depends on time. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver_api.h"
#include "must.h"
#include "workload/spin.h"

enum { US = 1000, MS = 1000000 };

#define SAY(call) printf("%s = %d\n", #call, (int)(call))

static CUcontext context;
static CUfunction spin;

static CUfunction load(void) {
    CUmodule module;
    CUfunction function;

    MUST(cuModuleLoadData(&module, SPIN_PTX));
    MUST(cuModuleGetFunction(&function, module, "spin"));
    return function;
}

static void start(void) {
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    spin = load();
}

static CUresult launch(CUfunction function, unsigned long long ns, CUstream stream) {
    void *parameters[] = {&ns};

    return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

static CUstream make_stream(unsigned int flags) {
    CUstream stream;

    MUST(cuStreamCreate(&stream, flags));
    return stream;
}

static CUevent make_event(unsigned int flags) {
    CUevent event;

    MUST(cuEventCreate(&event, flags));
    return event;
}

static int in_threads(int count, void *(*work)(void *)) {
    pthread_t threads[64];
    void *failed;
    int sum = 0;

    for (long index = 0; index < count; index++)
        pthread_create(&threads[index], NULL, work, (void *)index);
    for (int index = 0; index < count; index++) {
        pthread_join(threads[index], &failed);
        sum += (int)(long)failed;
    }
    return sum;
}

/* ---- threads ---- */

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

static void threads(void) {
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
static void leaving_threads(void) {
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

static void neighbours(void) {
    start();
    printf("failed: %d\n", in_threads(4, neighbour));
    SAY(cuCtxSynchronize());
}

/* ---- streams and events ---- */

static void streams(void) {
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

static void events(void) {
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
static void loose_events(void) {
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

static void chains(void) {
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
static void default_streams(void) {
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

/* ---- contexts and devices ---- */

static void contexts(void) {
    CUcontext made;

    start();
    for (int round = 0; round < 40; round++) {
        CUfunction function;

        MUST(cuCtxCreate_v2(&made, round % 2 ? CU_CTX_SCHED_BLOCKING_SYNC : 0, 0));
        function = load();
        for (int number = 0; number < 5; number++)
            MUST(launch(function, 20 * US, NULL));
        if (round % 3)
            MUST(cuCtxSynchronize());
        MUST(cuCtxDestroy_v2(made));
    }
    MUST(cuCtxSetCurrent(context));
    MUST(launch(spin, MS, NULL));
    SAY(cuCtxSynchronize());
    for (int round = 0; round < 20; round++) {
        CUcontext again;

        MUST(cuDevicePrimaryCtxRetain(&again, 0));
        MUST(cuDevicePrimaryCtxRelease_v2(0));
    }
    SAY(cuDevicePrimaryCtxReset_v2(0));
    SAY(launch(NULL, MS, NULL));
}

static void both_kinds_of_context(void) {
    CUcontext made, popped;
    CUfunction function;

    start();
    MUST(cuCtxCreate_v2(&made, 0, 0));
    function = load();
    for (int round = 0; round < 50; round++) {
        MUST(launch(function, 50 * US, NULL));
        MUST(cuCtxPushCurrent_v2(context));
        MUST(launch(spin, 50 * US, NULL));
        MUST(cuCtxPopCurrent_v2(&popped));
        if (round % 10 == 9)
            MUST(cuCtxSynchronize());
    }
    printf("the other context's function: %d\n", (int)launch(spin, US, NULL));
    SAY(cuCtxDestroy_v2(made));
    MUST(cuCtxSetCurrent(context));
    SAY(cuCtxSynchronize());
}

static void two_gpus(void) {
    CUcontext of[2];
    CUfunction function[2];
    CUdeviceptr memory[2];
    char text[8] = "";
    int count;

    MUST(cuInit(0));
    MUST(cuDeviceGetCount(&count));
    printf("devices: %d\n", count);
    for (int device = 0; device < 2; device++) {
        MUST(cuDevicePrimaryCtxRetain(&of[device], device));
        MUST(cuCtxSetCurrent(of[device]));
        function[device] = load();
        MUST(cuMemAlloc_v2(&memory[device], 1 << 20));
    }
    for (int round = 0; round < 200; round++) {
        MUST(cuCtxSetCurrent(of[round % 2]));
        MUST(launch(function[round % 2], 100 * US, NULL));
    }
    MUST(cuCtxSetCurrent(of[0]));
    MUST(cuMemcpyHtoD_v2(memory[0], "copied", 7));
    MUST(cuMemcpyPeer(memory[1], of[1], memory[0], of[0], 7));
    MUST(cuCtxSetCurrent(of[1]));
    MUST(cuMemcpyDtoH_v2(text, memory[1], 7));
    printf("%s\n", text);
    for (int device = 0; device < 2; device++) {
        MUST(cuCtxSetCurrent(of[device]));
        SAY(cuCtxSynchronize());
    }
}

/* ---- graphs ---- */

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

static void graphs(void) {
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
static void capture_beside_waits(void) {
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
static void broken_capture(void) {
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

/* ---- host functions ---- */

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

static void signalling_host_functions(void) { host_functions(signal_other, 50); }

/* The stream goes on only when another thread has launched. */
static void blocking_host_functions(void) { host_functions(signal_and_wait, 20); }

/* ---- launches ---- */

static void cooperative(void) {
    unsigned long long ns = 100 * US;
    void *parameters[] = {&ns};

    start();
    for (int number = 0; number < 100; number++)
        MUST(cuLaunchCooperativeKernel(spin, 4, 1, 1, 32, 1, 1, 0, NULL, parameters));
    SAY(cuLaunchCooperativeKernel(spin, 1000000, 1, 1, 1024, 1, 1, 0, NULL, parameters));
    SAY(cuCtxSynchronize());
}

static void long_kernel(void) {
    start();
    MUST(launch(spin, 2000ull * MS, NULL));
    SAY(cuStreamQuery(NULL));
    MUST(launch(spin, MS, NULL));
    SAY(cuCtxSynchronize());
    SAY(cuStreamQuery(NULL));
}

/* Far more than the driver takes before it blocks. */
static void deep_queue(void) {
    start();
    for (int number = 0; number < 5000; number++)
        MUST(launch(spin, 20 * US, NULL));
    SAY(cuCtxSynchronize());
}

/* Ends with work in the queue. */
static void left_behind(void) {
    start();
    MUST(launch(spin, MS, NULL));
    MUST(cuCtxSynchronize());
    for (int number = 0; number < 200; number++)
        MUST(launch(spin, MS, NULL));
    printf("left\n");
}

static void wrong_arguments(void) {
    CUdeviceptr memory;
    size_t size;
    unsigned long long ns = US;
    void *parameters[] = {&ns};

    SAY(cuMemAlloc_v2(&memory, 16));
    SAY(cuCtxSynchronize());
    MUST(cuInit(0));
    SAY(cuMemAlloc_v2(&memory, 16));
    SAY(cuMemGetInfo_v2(&size, &size));
    SAY(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    SAY(cuDeviceTotalMem_v2(&size, 99));
    SAY(cuDeviceTotalMem_v2(NULL, 0));
    start();
    SAY(cuMemAlloc_v2(&memory, 0));
    SAY(cuMemAlloc_v2(NULL, 16));
    SAY(cuMemFree_v2(0));
    SAY(cuMemFree_v2(12345));
    SAY(cuMemGetInfo_v2(NULL, NULL));
    SAY(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    SAY(cuLaunchKernel(spin, 0, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    SAY(cuLaunchKernel(spin, 1, 1, 1, 2048, 1, 1, 0, NULL, parameters, NULL));
    SAY(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    SAY(cuMemcpyHtoD_v2(64, &ns, 8));
    SAY(cuGraphLaunch(NULL, NULL));
    SAY(cuStreamSynchronize(NULL));
    MUST(cuMemAlloc_v2(&memory, 16));
    SAY(cuMemFree_v2(memory));
    SAY(cuMemFree_v2(memory));
    MUST(cuCtxSetCurrent(NULL));
    SAY(cuCtxSynchronize());
    SAY(launch(spin, US, NULL));
    SAY(cuMemAlloc_v2(&memory, 16));
}

/* ---- memory ---- */

static void pools(void) {
    CUstream stream[2];
    CUmemoryPool pool;
    size_t before, after, total;

    start();
    stream[0] = make_stream(CU_STREAM_NON_BLOCKING);
    stream[1] = make_stream(CU_STREAM_NON_BLOCKING);
    MUST(cuMemGetInfo_v2(&before, &total));
    for (int round = 0; round < 300; round++) {
        CUdeviceptr memory;

        MUST(cuMemAllocAsync(&memory, (size_t)(round % 7 + 1) << 20, stream[round % 2]));
        MUST(cuMemsetD8Async(memory, 1, 4096, stream[round % 2]));
        MUST(cuMemFreeAsync(memory, stream[round % 2]));
    }
    SAY(cuCtxSynchronize());
    MUST(cuDeviceGetDefaultMemPool(&pool, 0));
    SAY(cuMemPoolTrimTo(pool, 0));
    MUST(cuMemGetInfo_v2(&after, &total));
    /* What a process that ended before has had may come back meanwhile. */
    printf("all back: %d\n", before <= after);
}

/* A process that only looks. */
static void queries(void) {
    char name[64];
    size_t free_bytes, total, again;

    MUST(cuInit(0));
    MUST(cuDeviceGetName(name, sizeof name, 0));
    MUST(cuDeviceTotalMem_v2(&total, 0));
    start();
    MUST(cuMemGetInfo_v2(&free_bytes, &again));
    printf("%s, agree: %d\n", name, total == again && free_bytes <= total);
}

static void fork_after(void) {
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

static void fork_before(void) {
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

#define THING(name) {#name, name}
static const struct {
    const char *name;
    void (*run)(void);
} THINGS[] = {
    THING(threads),
    THING(leaving_threads),
    THING(neighbours),
    THING(streams),
    THING(events),
    THING(loose_events),
    THING(chains),
    THING(default_streams),
    THING(contexts),
    THING(both_kinds_of_context),
    THING(two_gpus),
    THING(graphs),
    THING(capture_beside_waits),
    THING(broken_capture),
    THING(signalling_host_functions),
    THING(blocking_host_functions),
    THING(cooperative),
    THING(long_kernel),
    THING(deep_queue),
    THING(left_behind),
    THING(wrong_arguments),
    THING(pools),
    THING(queries),
    THING(fork_after),
    THING(fork_before),
};

int main(int argc, char **argv) {
    for (size_t index = 0; index < sizeof THINGS / sizeof *THINGS; index++) {
        if (argc < 2)
            puts(THINGS[index].name);
        else if (strcmp(argv[1], THINGS[index].name) == 0)
            THINGS[index].run();
    }
    return 0;
}
