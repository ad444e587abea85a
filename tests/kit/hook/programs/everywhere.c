/* Launches from many threads, each in a context of its own, on every device that there is: argv: threads, microseconds of a
 * kernel. Each thread uses three streams in turn: one of its own, the legacy one, and the thread's. Says "ready" when all
 * is set up, launches from the first line on stdin until the second is there, and says "= RESULT LAUNCHES" when all
 * threads have waited for what they launched. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "driver_api.h"
#include "workload/spin.h"

enum { THREADS = 256 };

static int devices;
static unsigned long long kernel_ns;
static pthread_barrier_t set_up, started;
static CUresult results[THREADS];
static unsigned long long launches;

static CUresult launch(CUfunction function, CUstream stream, unsigned long long round) {
    void *arguments[] = {&kernel_ns};

    if (round % 3 == 0)
        return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL);
    if (round % 3 == 1)
        return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL);
    return cuLaunchKernel_ptsz(function, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL);
}

static void *work(void *data) {
    struct pollfd line = {.fd = STDIN_FILENO, .events = POLLIN};
    CUresult *result = data;
    CUcontext context;
    CUfunction function;
    CUmodule module;
    CUstream stream;

    *result = cuCtxCreate_v2(&context, 0, (CUdevice)((result - results) % devices));
    if (*result == CUDA_SUCCESS)
        *result = cuModuleLoadData(&module, SPIN_PTX);
    if (*result == CUDA_SUCCESS)
        *result = cuModuleGetFunction(&function, module, "spin");
    if (*result == CUDA_SUCCESS)
        *result = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    pthread_barrier_wait(&set_up);
    pthread_barrier_wait(&started);
    for (unsigned long long i = 0; poll(&line, 1, 0) == 0 && *result == CUDA_SUCCESS; i++) {
        *result = launch(function, stream, i);
        __atomic_add_fetch(&launches, 1, __ATOMIC_RELAXED);
    }
    if (*result == CUDA_SUCCESS)
        *result = cuCtxSynchronize();
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    char line[8];
    int count;

    if (argc != 3 || (count = atoi(argv[1])) > THREADS)
        return 2;
    kernel_ns = strtoull(argv[2], NULL, 10) * 1000;
    setvbuf(stdout, NULL, _IOLBF, 0);
    setvbuf(stdin, NULL, _IONBF, 0);
    if (cuInit(0) != CUDA_SUCCESS || cuDeviceGetCount(&devices) != CUDA_SUCCESS)
        return 3;
    pthread_barrier_init(&set_up, NULL, (unsigned int)count + 1);
    pthread_barrier_init(&started, NULL, (unsigned int)count + 1);
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, work, &results[i]);
    pthread_barrier_wait(&set_up);
    printf("ready\n");
    if (fgets(line, sizeof(line), stdin) == NULL)
        return 4;
    pthread_barrier_wait(&started);
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        if (results[i] != CUDA_SUCCESS)
            results[0] = results[i];
    }
    printf("= %d %llu\n", (int)results[0], launches);
    return 0;
}
