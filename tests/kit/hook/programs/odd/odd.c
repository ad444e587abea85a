#include "odd.h"

#include <pthread.h>

#include "workload/spin.h"

CUcontext context;
CUfunction spin;

CUfunction load(void) {
    CUmodule module;
    CUfunction function;

    MUST(cuModuleLoadData(&module, SPIN_PTX));
    MUST(cuModuleGetFunction(&function, module, "spin"));
    return function;
}

void start(void) {
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    spin = load();
}

CUresult launch(CUfunction function, unsigned long long ns, CUstream stream) {
    void *parameters[] = {&ns};

    return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

CUstream make_stream(unsigned int flags) {
    CUstream stream;

    MUST(cuStreamCreate(&stream, flags));
    return stream;
}

CUevent make_event(unsigned int flags) {
    CUevent event;

    MUST(cuEventCreate(&event, flags));
    return event;
}

int in_threads(int count, void *(*work)(void *)) {
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
