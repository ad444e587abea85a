#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "workload/spin.h"

CUcontext context;
CUfunction function;
CUstream streams[MANY];
int stream_count = 1;

CUresult load(void) {
    CUmodule module;
    CUresult result = cu.cuModuleLoadData(&module, SPIN_PTX);

    return result != CUDA_SUCCESS ? result : cu.cuModuleGetFunction(&function, module, "spin");
}

CUresult launch(unsigned long long us, int stream, const char *how) {
    unsigned long long ns = us * 1000;
    void *parameters[] = {&ns};

    if (strcmp(how, "ex") == 0) {
        const CUlaunchConfig config = {.gridDimX = 1,
                                       .gridDimY = 1,
                                       .gridDimZ = 1,
                                       .blockDimX = 1,
                                       .blockDimY = 1,
                                       .blockDimZ = 1,
                                       .hStream = streams[stream]};

        return cu.cuLaunchKernelEx(&config, function, parameters, NULL);
    }
    if (strcmp(how, "cooperative") == 0)
        return cu.cuLaunchCooperativeKernel(function, 1, 1, 1, 1, 1, 1, 0, streams[stream], parameters);
    return cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, streams[stream], parameters, NULL);
}

int more(unsigned long long done, unsigned long long count) {
    struct pollfd next = {.fd = STDIN_FILENO, .events = POLLIN};

    return count > 0 ? done < count : poll(&next, 1, 0) == 0;
}

void *launch_all(void *data) {
    struct job *job = data;

    job->result = cu.cuCtxSetCurrent(context);
    for (unsigned long long i = 0; more(i, job->count) && job->result == CUDA_SUCCESS; i++)
        job->result = launch(job->size, job->stream, "");
    return NULL;
}
