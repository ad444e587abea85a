/* Two threads of one program launch in turn, as a framework does whose backward pass has a thread of its own. In each phase
 * rounds of short kernels run for argv[1] ms: 16 launches by the first thread, and in phases of two 16 more by the second.
 * Before and after each phase it waits for the device and prints a line: "begins PHASE", "ended PHASE rounds COUNT ns NS
 * typical_ns NS sleeps COUNT": the time of them all, the median time of a group of rounds, and how often a thread slept in its
 * launches. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "driver_api.h"

enum { KERNELS = 8, GROUP_ROUNDS = 20, GROUPS_MOST = 65536 };

#define ENTRY(name) ".visible .entry " name "()\n{\n // simgpu: duration_ns = 5000\n ret;\n}\n"
static const char PTX[] = ".version 7.0\n.target sm_70\n.address_size 64\n" ENTRY("k0") ENTRY("k1") ENTRY("k2") ENTRY("k3")
    ENTRY("k4") ENTRY("k5") ENTRY("k6") ENTRY("k7") ENTRY("k8") ENTRY("k9") ENTRY("k10") ENTRY("k11") ENTRY("k12") ENTRY("k13")
        ENTRY("k14") ENTRY("k15");

enum kind { ONE, OWN, SAME };
static const enum kind PHASES[] = {ONE, OWN, ONE, SAME, ONE};

static CUcontext context;
static CUfunction functions[2 * KERNELS];
static sem_t go, done;
static int first;      /* of the kernels that the second thread launches */
static long sleeps[2]; /* in its launches, of each thread */

static void check(CUresult result) {
    if (result != CUDA_SUCCESS) {
        fprintf(stderr, "the driver answered %d\n", (int)result);
        exit(1);
    }
}

static unsigned long long now_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned long long)now.tv_sec * 1000000000u + (unsigned long long)now.tv_nsec;
}

static void launch_all(int from, int thread) {
    struct rusage before, after;

    getrusage(RUSAGE_THREAD, &before);
    for (int i = 0; i < 2 * KERNELS; i++)
        check(cuLaunchKernel(functions[from + i % KERNELS], 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
    getrusage(RUSAGE_THREAD, &after);
    sleeps[thread] += after.ru_nvcsw - before.ru_nvcsw;
}

static void *second(void *nothing) {
    check(cuCtxSetCurrent(context));
    for (;;) {
        sem_wait(&go);
        launch_all(first, 1);
        sem_post(&done);
    }
    return nothing;
}

static void run_round(enum kind kind) {
    launch_all(0, 0);
    if (kind == ONE)
        return;
    first = kind == OWN ? KERNELS : 0;
    sem_post(&go);
    sem_wait(&done);
}

static int by_size(const void *a, const void *b) {
    const unsigned long long left = *(const unsigned long long *)a, right = *(const unsigned long long *)b;

    return (left > right) - (left < right);
}

static void run_phase(int phase, unsigned long long phase_ns) {
    static unsigned long long group_ns[GROUPS_MOST];
    unsigned long long begin_ns, group_begin_ns, all_ns, rounds = 0;
    int groups = 0;

    check(cuCtxSynchronize());
    sleeps[0] = sleeps[1] = 0;
    printf("begins %d\n", phase);
    fflush(stdout);
    begin_ns = group_begin_ns = now_ns();
    while (now_ns() - begin_ns < phase_ns && groups < GROUPS_MOST) {
        run_round(PHASES[phase]);
        if (++rounds % GROUP_ROUNDS != 0)
            continue;
        check(cuCtxSynchronize());
        group_ns[groups++] = now_ns() - group_begin_ns;
        group_begin_ns = now_ns();
    }
    check(cuCtxSynchronize());
    all_ns = now_ns() - begin_ns;
    if (groups == 0)
        group_ns[groups++] = all_ns * GROUP_ROUNDS / rounds;
    qsort(group_ns, (size_t)groups, sizeof(group_ns[0]), by_size);
    printf("ended %d rounds %llu ns %llu typical_ns %llu sleeps %ld\n", phase, rounds, all_ns, group_ns[groups / 2],
           sleeps[0] + sleeps[1]);
    fflush(stdout);
}

int main(int argc, char **argv) {
    const unsigned long long phase_ns = argc > 1 ? strtoull(argv[1], NULL, 10) * 1000000u : 0;
    CUmodule module;
    pthread_t thread;

    check(cuInit(0));
    check(cuDevicePrimaryCtxRetain(&context, 0));
    check(cuCtxSetCurrent(context));
    check(cuModuleLoadData(&module, PTX));
    for (int i = 0; i < 2 * KERNELS; i++) {
        char name[8];

        snprintf(name, sizeof(name), "k%d", i);
        check(cuModuleGetFunction(&functions[i], module, name));
    }
    sem_init(&go, 0, 0);
    sem_init(&done, 0, 0);
    if (pthread_create(&thread, NULL, second, NULL) != 0)
        return 1;
    for (int phase = 0; phase < (int)(sizeof(PHASES) / sizeof(PHASES[0])); phase++)
        run_phase(phase, phase_ns);
    return 0;
}
