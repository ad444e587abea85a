/* A CUDA program that runs kernels of a given length, on a simulated GPU or a real one: what the demo, the benchmarks
 * and the tests share GPUs between. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "workload/doors.h"
#include "workload/options.h"
#include "workload/report.h"
#include "workload/spin.h"
#include "workload/times.h"

/* A timing batch fits into an empty queue of any driver (1,024 launches), so that no launch in it waits. */
#define TIMED_BATCH 256

/* The first launches after a wait open a queue, and with a hook ask for a part of it; what is timed is what follows. */
#define UNTIMED_LAUNCHES 2

/* One function a length, as in real programs: what a launch takes can be known from what is launched. */
static const char SPINS_PTX[] = SPIN_HEAD SPIN_ENTRY("spin0") SPIN_ENTRY("spin1") SPIN_ENTRY("spin2") SPIN_ENTRY("spin3")
    SPIN_ENTRY("spin4") SPIN_ENTRY("spin5") SPIN_ENTRY("spin6") SPIN_ENTRY("spin7");
_Static_assert(KERNELS == 8, "one function for each length");

struct burn {
    struct options options;
    struct doors cu;
    CUfunction spin[KERNELS];
    CUstream streams[STREAMS];
    CUgraphExec graph;
    uint64_t graph_ns;
    uint64_t random;
    struct report report;
};

/* 0, or -1 with one line on stderr. */
static int check(const struct burn *burn, CUresult result, const char *what) {
    if (result == CUDA_SUCCESS)
        return 0;
    const char *name = NULL;
    burn->cu.error_name(result, &name);
    fprintf(stderr, "burn: %s: %s\n", what, name ? name : "unknown error");
    return -1;
}

#define TRY(burn, call, what)             \
    do {                                  \
        if (check(burn, call, what) != 0) \
            return -1;                    \
    } while (0)

static int set_up(struct burn *burn) {
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUdeviceptr memory;
    TRY(burn, burn->cu.init(0), "cuInit");
    TRY(burn, burn->cu.device_get(&device, burn->options.device), "cuDeviceGet");
    TRY(burn, burn->cu.retain(&context, device), "cuDevicePrimaryCtxRetain");
    TRY(burn, burn->cu.set_current(context), "cuCtxSetCurrent");
    TRY(burn, burn->cu.load(&module, SPINS_PTX), "cuModuleLoadData");
    for (int index = 0; index < burn->options.kernels; index++) {
        char name[] = "spin0";
        name[4] = (char)('0' + index);
        TRY(burn, burn->cu.get_function(&burn->spin[index], module, name), "cuModuleGetFunction");
    }
    for (int index = 0; index < burn->options.streams; index++)
        TRY(burn, burn->cu.stream_create(&burn->streams[index], CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    if (burn->options.alloc_bytes)
        TRY(burn, burn->cu.alloc(&memory, burn->options.alloc_bytes), "cuMemAlloc");
    return 0;
}

/* Which kernel is next: drawn by weight, the same sequence in every run. */
static int next_kernel(struct burn *burn) {
    const struct options *options = &burn->options;
    if (options->kernels == 1)
        return 0;
    unsigned int sum = 0;
    for (int index = 0; index < options->kernels; index++)
        sum += options->weight[index];
    /* Marsaglia's xorshift, 64 bits. */
    burn->random ^= burn->random << 13;
    burn->random ^= burn->random >> 7;
    burn->random ^= burn->random << 17;
    unsigned int draw = (unsigned int)(burn->random % sum);
    int index = 0;
    while (draw >= options->weight[index])
        draw -= options->weight[index++];
    return index;
}

static int launch_kernel(struct burn *burn, CUstream stream, uint64_t *length_ns) {
    int index = next_kernel(burn);
    *length_ns = burn->options.kernel_ns[index];
    void *params[] = {length_ns};
    TRY(burn, burn->cu.launch(burn->spin[index], burn->options.grid, 1, 1, 32, 1, 1, 0, stream, params, NULL), "cuLaunchKernel");
    return 0;
}

static int make_graph(struct burn *burn) {
    CUstream stream;
    CUgraph graph;
    TRY(burn, burn->cu.stream_create(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    TRY(burn, burn->cu.begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), "cuStreamBeginCapture");
    for (int index = 0; index < burn->options.graph; index++) {
        uint64_t length_ns;
        if (launch_kernel(burn, stream, &length_ns) != 0)
            return -1;
        burn->graph_ns += length_ns;
    }
    TRY(burn, burn->cu.end_capture(stream, &graph), "cuStreamEndCapture");
    TRY(burn, burn->cu.instantiate(&burn->graph, graph, 0), "cuGraphInstantiateWithFlags");
    return 0;
}

static int launch(struct burn *burn, CUstream *used) {
    uint64_t length_ns = burn->graph_ns;
    CUstream stream = NULL;
    if (burn->options.streams)
        stream = burn->streams[burn->report.launches % (uint64_t)burn->options.streams];
    if (used)
        *used = stream;
    if (burn->graph)
        TRY(burn, burn->cu.graph_launch(burn->graph, stream), "cuGraphLaunch");
    else if (launch_kernel(burn, stream, &length_ns) != 0)
        return -1;
    burn->report.launches++;
    burn->report.kernel_ns += length_ns;
    return 0;
}

/* Launches some and waits for the last, that is for all of them: streams that take turns are one queue to burn. */
static int burst(struct burn *burn) {
    uint64_t count = burn->options.sync_every ? burn->options.sync_every : 1;
    CUstream stream = NULL;
    for (uint64_t index = 0; index < count; index++) {
        if (launch(burn, &stream) != 0)
            return -1;
    }
    if (burn->options.streams > 1)
        TRY(burn, burn->cu.synchronize(), "cuCtxSynchronize");
    else
        TRY(burn, burn->cu.stream_synchronize(stream), "cuStreamSynchronize");
    burn->report.synchronizations++;
    return 0;
}

/* A request that comes late because the one before took long has waited since it was due. */
static int request(struct burn *burn, uint64_t due_ns) {
    if (burst(burn) != 0)
        return -1;
    return report_request(&burn->report, due_ns);
}

static int step(struct burn *burn) {
    const struct options *options = &burn->options;
    if (options->mode == MODE_ASYNC) {
        if (launch(burn, NULL) != 0)
            return -1;
        if (!options->sync_every || burn->report.launches % options->sync_every)
            return 0;
        TRY(burn, burn->cu.synchronize(), "cuCtxSynchronize");
        burn->report.synchronizations++;
    } else if (options->mode == MODE_REQUEST) {
        uint64_t due_ns = burn->report.begin_ns + burn->report.requests * options->period_ns;
        sleep_until(due_ns);
        return request(burn, due_ns);
    } else if (burst(burn) != 0) {
        return -1;
    }
    if (options->mode == MODE_THINK)
        think(options->think_ns);
    return 0;
}

static int run(struct burn *burn) {
    const struct options *options = &burn->options;
    uint64_t end_ns = burn->report.begin_ns + (uint64_t)(options->seconds * 1e9);
    uint64_t idle_ns = burn->report.begin_ns + (uint64_t)(options->idle_from * 1e9);
    uint64_t work_ns = burn->report.begin_ns + (uint64_t)(options->idle_until * 1e9);
    for (uint64_t now = now_ns(); now < end_ns; now = now_ns()) {
        if (options->requests && burn->report.requests >= options->requests)
            break;
        if (now >= idle_ns && now < work_ns)
            sleep_until(work_ns < end_ns ? work_ns : end_ns);
        else if (step(burn) != 0)
            return -1;
    }
    return 0;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void *wait_for_end(void *nothing) {
    for (;;)
        pause();
    return nothing;
}

/* The median over batches of the mean time of a launch in a batch: a clock call around each would cost as much as what
 * is to be measured. */
static int time_launches(struct burn *burn) {
    pthread_t another;
    /* A real driver has threads of its own, and in a process of one thread glibc's mutexes, which the simulated driver
     * takes at each launch, cost 5 ns less: with and without a hook must be the same there. */
    if (pthread_create(&another, NULL, wait_for_end, NULL) != 0) {
        fprintf(stderr, "burn: cannot start a thread\n");
        return -1;
    }
    uint64_t batches = (burn->options.launches + TIMED_BATCH - 1) / TIMED_BATCH;
    double *means = calloc(batches ? batches : 1, sizeof *means);
    int failed = means ? 0 : -1;
    for (uint64_t batch = 0; batch < batches && !failed; batch++) {
        for (int index = 0; index < UNTIMED_LAUNCHES && !failed; index++)
            failed = launch(burn, NULL);
        uint64_t begin_ns = now_ns();
        for (int index = 0; index < TIMED_BATCH && !failed; index++)
            failed = launch(burn, NULL);
        means[batch] = (double)(now_ns() - begin_ns) / TIMED_BATCH;
        if (!failed)
            failed = check(burn, burn->cu.synchronize(), "cuCtxSynchronize");
    }
    if (!failed) {
        qsort(means, batches, sizeof *means, by_size);
        burn->report.launch_ns = (uint64_t)(means[batches / 2] * 1000);
    }
    free(means);
    return failed;
}

/* What is asked to end, as a pod's container is, ends at once and well. Without a handler the first process of a container
 * would go on: the kernel has no default for it. */
static void end(int number) {
    (void)number;
    _exit(0);
}

int main(int argc, char **argv) {
    struct burn burn = {.random = 88172645463325252u};
    bool done;
    int status = read_options(argc, argv, &burn.options, &done);
    if (done)
        return status;
    signal(SIGTERM, end);
    if (find_doors(&burn.cu, burn.options.door, burn.options.graph > 0) != 0 || set_up(&burn) != 0 ||
        (burn.options.graph && make_graph(&burn) != 0))
        return 1;
    if (burn.options.told && wait_to_be_told() != 0)
        return 1;
    burn.report.begin_ns = now_ns();
    if ((burn.options.launches ? time_launches(&burn) : run(&burn)) != 0)
        return 1;
    size_t free_bytes, total_bytes;
    if (check(&burn, burn.cu.synchronize(), "cuCtxSynchronize") != 0 ||
        check(&burn, burn.cu.mem_info(&free_bytes, &total_bytes), "cuMemGetInfo") != 0)
        return 1;
    burn.report.end_ns = now_ns();
    report_print(&burn.report, &burn.options, free_bytes, total_bytes);
    return 0;
}
