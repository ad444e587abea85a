#ifndef EDGESHARE_CLIENT_H
#define EDGESHARE_CLIENT_H

#include <stddef.h>

#include "driver_api.h"

/* A CUDA program that does what it is told: one command a line on stdin, one answer a line on stdout ("= result …", with
 * the driver's result first). */

/* NAME(symbol that is exported, name for cuGetProcAddress) */
#define FUNCTIONS(NAME)                                            \
    NAME(cuInit, cuInit)                                           \
    NAME(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain)       \
    NAME(cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease)  \
    NAME(cuCtxCreate_v2, cuCtxCreate)                              \
    NAME(cuCtxDestroy_v2, cuCtxDestroy)                            \
    NAME(cuCtxSetCurrent, cuCtxSetCurrent)                         \
    NAME(cuCtxSynchronize, cuCtxSynchronize)                       \
    NAME(cuModuleLoadData, cuModuleLoadData)                       \
    NAME(cuModuleGetFunction, cuModuleGetFunction)                 \
    NAME(cuStreamCreate, cuStreamCreate)                           \
    NAME(cuStreamDestroy_v2, cuStreamDestroy)                      \
    NAME(cuStreamSynchronize, cuStreamSynchronize)                 \
    NAME(cuStreamBeginCapture_v2, cuStreamBeginCapture)            \
    NAME(cuStreamEndCapture, cuStreamEndCapture)                   \
    NAME(cuStreamWaitEvent, cuStreamWaitEvent)                     \
    NAME(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags) \
    NAME(cuGraphLaunch, cuGraphLaunch)                             \
    NAME(cuLaunchKernel, cuLaunchKernel)                           \
    NAME(cuLaunchHostFunc, cuLaunchHostFunc)                       \
    NAME(cuLaunchKernelEx, cuLaunchKernelEx)                       \
    NAME(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel)     \
    NAME(cuEventCreate, cuEventCreate)                             \
    NAME(cuEventRecord, cuEventRecord)                             \
    NAME(cuEventSynchronize, cuEventSynchronize)                   \
    NAME(cuMemcpyDtoH_v2, cuMemcpyDtoH)                            \
    NAME(cuMemsetD8_v2, cuMemsetD8)                                \
    NAME(cuMemsetD8Async, cuMemsetD8Async)                         \
    NAME(cuMemAlloc_v2, cuMemAlloc)                                \
    NAME(cuMemAllocPitch_v2, cuMemAllocPitch)                      \
    NAME(cuMemAllocManaged, cuMemAllocManaged)                     \
    NAME(cuMemAllocAsync, cuMemAllocAsync)                         \
    NAME(cuMemFree_v2, cuMemFree)                                  \
    NAME(cuMemFreeAsync, cuMemFreeAsync)                           \
    NAME(cuMemGetInfo_v2, cuMemGetInfo)                            \
    NAME(cuDeviceTotalMem_v2, cuDeviceTotalMem)

/* The driver's functions, as they were found through one of its doors. */
#define MEMBER(symbol, name) __typeof__(&symbol) symbol;
extern struct functions {
    FUNCTIONS(MEMBER)
} cu;

/* Finds them through the door of that name; -1 where one is not there, which it says. */
int find_functions(const char *door);

/* The context that commands are done in, its kernel, and the streams: the first is the default one. */
enum { MANY = 4096 };
extern CUcontext context;
extern CUfunction function;
extern CUstream streams[MANY];
extern int stream_count;

/* Has the current context's kernel found. */
CUresult load(void);

/* `how`: "ex" or "cooperative", or anything else for a plain launch. */
CUresult launch(unsigned long long us, int stream, const char *how);

/* Whether there is more to do after so much of a count; where that is 0, until the next command is there. */
int more(unsigned long long done, unsigned long long count);

/* What each of several threads is to do, and what came of it. */
struct job {
    unsigned long long size, count; /* us of a kernel, or bytes of a block */
    int stream;
    CUresult result;
};

/* Has each of so many threads, 64 at most, do `work` with a job of its own; the result of one that failed. Each launches
 * into a stream of its own, as far as there are streams. */
CUresult in_threads(void *(*work)(void *), int threads, unsigned long long size, unsigned long long count);

/* Launches kernels; for in_threads. */
void *launch_all(void *job);

/* A command that was read. */
struct said {
    unsigned long long a, b;
    long long c;
    char word[32];
    char *rest;    /* all that stands behind the name */
    char more[64]; /* what is answered behind the result */
};

/* Commands that get, use and free memory. "churn": allocates and frees at once in c threads; what does not fit is no error
 * there. */
CUresult churn(struct said *said);
CUresult get_block(struct said *said);
CUresult free_block(struct said *said);
CUresult free_block_async(struct said *said);
CUresult set_block(struct said *said);
CUresult set_block_async(struct said *said);
CUresult fetch_block(struct said *said);
CUresult memory_info(struct said *said);
CUresult memory_total(struct said *said);

/* Does one command; 0 at the end. "launch", "paced", "spread", "napping", "loop" and "threads" launch so many kernels, or,
 * where 0 is asked for, kernels until the next command is there. */
int run(char *line);

#endif
