/* Functions in turn, by some threads, and how often the hook read the clock for it, which it does for each submission that
 * has to ask:  in_turn THREADS FUNCTIONS ROUNDS
 *
 * Each thread launches all of them in turn until the hook knows them, and then so many rounds more; prints the clock reads
 * of those rounds, of each thread. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "driver_api.h"

#define MUST(call)                                            \
    do {                                                      \
        CUresult result = (call);                             \
        if (result != CUDA_SUCCESS) {                         \
            fprintf(stderr, #call " answered %d\n", result);  \
            exit(1);                                          \
        }                                                     \
    } while (0)

#define HEAD ".version 6.0\n.target sm_50\n.address_size 64\n"
#define ENTRY ".visible .entry brief%d() { // simgpu: duration_ns = 1000\n ret; }\n"

enum { MOST = 400, LEARNING_ROUNDS = 12 };

static CUcontext context;
static CUfunction functions[MOST];
static int function_count, rounds;
static pthread_barrier_t learnt;

static __thread bool counting;
static __thread int reads;

/* In front of the C library's, for the hook too. Who asks is known by where its code stands. */
int clock_gettime(clockid_t clock, struct timespec *time)
{
    Dl_info caller;

    if (counting && dladdr(__builtin_return_address(0), &caller) != 0 && strstr(caller.dli_fname, "edgeshare") != NULL)
        reads++;
    return (int)syscall(SYS_clock_gettime, clock, time);
}

static void launch_all(void)
{
    for (int i = 0; i < function_count; i++)
        MUST(cuLaunchKernel(functions[i], 1, 1, 1, 32, 1, 1, 0, CU_STREAM_PER_THREAD, NULL, NULL));
}

static void *launch_in_turn(void *unused)
{
    (void)unused;
    MUST(cuCtxSetCurrent(context));
    for (int round = 0; round < LEARNING_ROUNDS; round++) {
        launch_all();
        MUST(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    }
    pthread_barrier_wait(&learnt);
    counting = true;
    for (int round = 0; round < rounds; round++)
        launch_all();
    counting = false;
    return (void *)(intptr_t)reads;
}

int main(int count, char **words)
{
    static char text[sizeof(HEAD) + MOST * (sizeof(ENTRY) + 16)] = HEAD;
    const int threads = count == 4 ? atoi(words[1]) : 0;
    pthread_t running[16];
    char *end = text + strlen(text);
    CUdevice device;
    CUmodule module;

    function_count = count == 4 ? atoi(words[2]) : 0;
    rounds = count == 4 ? atoi(words[3]) : 0;
    if (threads < 1 || threads > 16 || function_count < 1 || function_count > MOST)
        return 2;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    for (int i = 0; i < function_count; i++)
        end += sprintf(end, ENTRY, i);
    MUST(cuModuleLoadData(&module, text));
    for (int i = 0; i < function_count; i++) {
        char name[16];

        sprintf(name, "brief%d", i);
        MUST(cuModuleGetFunction(&functions[i], module, name));
    }
    pthread_barrier_init(&learnt, NULL, (unsigned int)threads);
    for (int i = 0; i < threads; i++)
        pthread_create(&running[i], NULL, launch_in_turn, NULL);
    for (int i = 0; i < threads; i++) {
        void *of_thread;

        pthread_join(running[i], &of_thread);
        printf("%d\n", (int)(intptr_t)of_thread);
    }
    MUST(cuCtxSynchronize());
    return 0;
}
