/* A client from inside: its process, its libraries, what its steps work on. */
#ifndef CLIENT_H
#define CLIENT_H

#include "driver_api.h"
#include "program.h"
#include "vt.h"

// clang-format off
#define FUNCTIONS(X)                                                                                                \
    X(cuInit) X(cuDevicePrimaryCtxRetain) X(cuCtxSetCurrent) X(cuModuleLoadData) X(cuModuleGetFunction)              \
    X(cuLaunchKernel) X(cuCtxSynchronize) X(cuStreamCreate) X(cuStreamDestroy_v2) X(cuStreamSynchronize)             \
    X(cuStreamQuery) X(cuStreamBeginCapture_v2) X(cuStreamEndCapture) X(cuGraphInstantiateWithFlags)                 \
    X(cuGraphLaunch) X(cuGraphExecDestroy) X(cuGraphDestroy) X(cuEventCreate) X(cuEventRecord)                       \
    X(cuEventSynchronize) X(cuStreamWaitEvent) X(cuMemAlloc_v2) X(cuMemFree_v2) X(cuMemAllocAsync) X(cuMemFreeAsync) \
    X(cuMemcpyHtoD_v2) X(cuMemcpyDtoH_v2) X(cuMemcpyDtoHAsync_v2) X(cuMemsetD8Async) X(cuLaunchHostFunc)
// clang-format on

struct graph {
    CUgraph graph;
    CUgraphExec exec;
    uint64_t duration_ns;
};

struct buffer {
    CUdeviceptr place;
    uint64_t bytes;
};

struct thread {
    struct client *client;
    const struct step *steps;
    uint32_t count, again;
    uint64_t random;
    char name[16];
};

enum { THREADS = 16 };

struct client {
    char name[32];
    char root[200];
    int process;
    bool hooked;
    CUcontext context;
    CUfunction functions[KERNELS];
    CUstream streams[STREAMS]; /* 0: the default stream */
    CUevent events[EVENTS];
    struct graph graphs[GRAPHS];
    struct buffer buffers[BUFFERS];
    struct kernel kernels[KERNELS];
    uint32_t kernel_count, weights;
    struct vt_sem turns[TURNS];
    struct thread threads[THREADS];
    uint32_t thread_count;
    uint64_t launch_ns, delay_ns;
    struct outcome outcome;
#define MEMBER(name) __typeof__(&name) name;
    FUNCTIONS(MEMBER)
#undef MEMBER
};

/* Notes the first error of a client; true where there is none. */
bool client_checks(struct client *client, CUresult result, uint32_t step);
/* Runs a thread's steps to their end. */
void run_steps(struct thread *thread);

#endif
