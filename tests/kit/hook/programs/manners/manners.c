#include "manners.h"

#include <pthread.h>
#include <sys/wait.h>

#include "workload/spin.h"

CUcontext context;
CUfunction function;

void start(void) {
    CUmodule module;

    GOOD(cuInit(0));
    GOOD(cuDevicePrimaryCtxRetain(&context, 0));
    GOOD(cuCtxSetCurrent(context));
    GOOD(cuModuleLoadData(&module, SPIN_PTX));
    GOOD(cuModuleGetFunction(&function, module, "spin"));
}

CUresult launch(unsigned long long us) {
    unsigned long long ns = us * 1000;
    void *parameters[] = {&ns};

    return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL);
}

void work(void) {
    CUdeviceptr block;
    size_t free_bytes, total_bytes;

    for (int i = 0; i < 20; i++)
        GOOD(launch(50));
    GOOD(cuMemAlloc_v2(&block, 1 << 20));
    GOOD(cuMemsetD8_v2(block, 0, 1));
    GOOD(cuMemGetInfo_v2(&free_bytes, &total_bytes));
    GOOD(cuCtxSynchronize());
    GOOD(cuMemFree_v2(block));
}

void in_thread(void *(*what)(void *), size_t stack_bytes) {
    pthread_attr_t attributes;
    pthread_t thread;

    pthread_attr_init(&attributes);
    if (stack_bytes != 0)
        MUST(pthread_attr_setstacksize(&attributes, stack_bytes) == 0);
    MUST(pthread_create(&thread, &attributes, what, NULL) == 0);
    MUST(pthread_join(thread, NULL) == 0);
}

void wait_for_word(const char *what) {
    puts(what);
    (void)fflush(stdout);
    while (getchar() != '\n')
        ;
}

int ended(pid_t child) {
    int status = -1;

    MUST(waitpid(child, &status, 0) == child);
    return status;
}
