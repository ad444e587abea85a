/* A CUDA program that runs kernels of a given length, on a simulated GPU or a real one: what the demo, the benchmarks
 * and the tests share GPUs between. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "workload/doors.h"
#include "workload/options.h"
#include "workload/spin.h"

/* A timing batch fits into an empty queue of any driver (1,024 launches), so that no launch in it waits. */
#define TIMED_BATCH 256

struct burn {
    struct options options;
    struct doors cu;
    CUfunction spin;
    CUstream streams[STREAMS];
    uint64_t launches, synchronizations, kernel_ns, random;
    uint64_t begin_ns, end_ns;
    uint64_t launch_ns; /* median, in timing mode */
};

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void sleep_until(uint64_t time_ns) {
    struct timespec until = {.tv_sec = (time_t)(time_ns / 1000000000u), .tv_nsec = (long)(time_ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
}

/* 0, or -1 with one line on stderr. */
static int check(const struct burn *burn, CUresult result, const char *what) {
    if (result == CUDA_SUCCESS)
        return 0;
    const char *name = NULL;
    burn->cu.error_name(result, &name);
    fprintf(stderr, "burn: %s: %s\n", what, name ? name : "unknown error");
    return -1;
}

#define TRY(burn, call, what)                   \
    do {                                        \
        if (check(burn, call, what) != 0)       \
            return -1;                          \
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
    TRY(burn, burn->cu.load(&module, SPIN_PTX), "cuModuleLoadData");
    TRY(burn, burn->cu.get_function(&burn->spin, module, "spin"), "cuModuleGetFunction");
    for (int index = 0; index < burn->options.streams; index++)
        TRY(burn, burn->cu.stream_create(&burn->streams[index], CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    if (burn->options.alloc_bytes)
        TRY(burn, burn->cu.alloc(&memory, burn->options.alloc_bytes), "cuMemAlloc");
    return 0;
}

/* The length of the next kernel: drawn by weight, the same sequence in every run. */
static uint64_t next_length(struct burn *burn) {
    const struct options *options = &burn->options;
    if (options->kernels == 1)
        return options->kernel_ns[0];
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
    return options->kernel_ns[index];
}

static int launch(struct burn *burn, CUstream *used) {
    uint64_t length_ns = next_length(burn);
    void *params[] = {&length_ns};
    CUstream stream = NULL;
    if (burn->options.streams)
        stream = burn->streams[burn->launches % (uint64_t)burn->options.streams];
    if (used)
        *used = stream;
    TRY(burn, burn->cu.launch(burn->spin, burn->options.grid, 1, 1, 32, 1, 1, 0, stream, params, NULL),
        "cuLaunchKernel");
    burn->launches++;
    burn->kernel_ns += length_ns;
    return 0;
}

static int step(struct burn *burn) {
    const struct options *options = &burn->options;
    CUstream stream;
    if (launch(burn, &stream) != 0)
        return -1;
    if (options->mode == MODE_ASYNC) {
        if (!options->sync_every || burn->launches % options->sync_every)
            return 0;
        TRY(burn, burn->cu.synchronize(), "cuCtxSynchronize");
    } else {
        TRY(burn, burn->cu.stream_synchronize(stream), "cuStreamSynchronize");
    }
    burn->synchronizations++;
    if (options->mode == MODE_THINK)
        sleep_until(now_ns() + options->think_ns);
    return 0;
}

static int run(struct burn *burn) {
    const struct options *options = &burn->options;
    uint64_t end_ns = burn->begin_ns + (uint64_t)(options->seconds * 1e9);
    uint64_t idle_ns = burn->begin_ns + (uint64_t)(options->idle_from * 1e9);
    uint64_t work_ns = burn->begin_ns + (uint64_t)(options->idle_until * 1e9);
    for (uint64_t now = now_ns(); now < end_ns; now = now_ns()) {
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

/* The median over batches of the mean time of a launch in a batch: a clock call around each would cost as much as what
 * is to be measured. */
static int time_launches(struct burn *burn) {
    uint64_t batches = (burn->options.launches + TIMED_BATCH - 1) / TIMED_BATCH;
    double *means = calloc(batches ? batches : 1, sizeof *means);
    int failed = means ? 0 : -1;
    for (uint64_t batch = 0; batch < batches && !failed; batch++) {
        uint64_t begin_ns = now_ns();
        for (int index = 0; index < TIMED_BATCH && !failed; index++)
            failed = launch(burn, NULL);
        means[batch] = (double)(now_ns() - begin_ns) / TIMED_BATCH;
        if (!failed)
            failed = check(burn, burn->cu.synchronize(), "cuCtxSynchronize");
    }
    if (!failed) {
        qsort(means, batches, sizeof *means, by_size);
        burn->launch_ns = (uint64_t)(means[batches / 2] * 1000);
    }
    free(means);
    return failed;
}

static void report(const struct burn *burn, size_t free_bytes, size_t total_bytes) {
    double wall = (double)(burn->end_ns - burn->begin_ns) / 1e9;
    if (!burn->options.json) {
        printf("%llu kernels, %.3f s of GPU time asked for, in %.3f s", (unsigned long long)burn->launches,
               (double)burn->kernel_ns / 1e9, wall);
        if (burn->options.launches)
            printf("; median launch %.1f ns", (double)burn->launch_ns / 1000);
        printf("\n");
        return;
    }
    printf("{\"launches\": %llu, \"kernel_ns\": %llu, \"synchronizations\": %llu, \"begin_ns\": %llu, \"end_ns\": %llu, "
           "\"wall_seconds\": %.6f, \"memory_free_bytes\": %zu, \"memory_total_bytes\": %zu",
           (unsigned long long)burn->launches, (unsigned long long)burn->kernel_ns,
           (unsigned long long)burn->synchronizations, (unsigned long long)burn->begin_ns,
           (unsigned long long)burn->end_ns, wall, free_bytes, total_bytes);
    if (burn->options.launches)
        printf(", \"median_launch_ns\": %.1f", (double)burn->launch_ns / 1000);
    printf("}\n");
}

int main(int argc, char **argv) {
    struct burn burn = {.random = 88172645463325252u};
    bool done;
    int status = read_options(argc, argv, &burn.options, &done);
    if (done)
        return status;
    if (find_doors(&burn.cu, burn.options.door) != 0 || set_up(&burn) != 0)
        return 1;
    if (burn.options.start_ns)
        sleep_until(burn.options.start_ns);
    burn.begin_ns = now_ns();
    if ((burn.options.launches ? time_launches(&burn) : run(&burn)) != 0)
        return 1;
    size_t free_bytes, total_bytes;
    if (check(&burn, burn.cu.synchronize(), "cuCtxSynchronize") != 0 ||
        check(&burn, burn.cu.mem_info(&free_bytes, &total_bytes), "cuMemGetInfo") != 0)
        return 1;
    burn.end_ns = now_ns();
    report(&burn, free_bytes, total_bytes);
    return 0;
}
