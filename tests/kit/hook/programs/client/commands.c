#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client.h"

static CUgraphExec graphs[MANY];
static CUdeviceptr blocks[MANY];
static int graph_count, block_count;

/* A function of the host that sleeps. */
static void nap(void *us) { usleep((useconds_t)(uintptr_t)us); }

/* The child does the commands that follow, separated by ';', and ends; its answers come before the parent's. */
static CUresult in_child(char *commands) {
    int status = -1;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        for (char *line = strtok(commands, ";"); line != NULL; line = strtok(NULL, ";"))
            run(line);
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, &status, 0);
    return (CUresult)status;
}

int run(char *line) {
    char name[32] = "", word[32] = "";
    unsigned long long a = 0, b = 0;
    long long c = 0;
    size_t free_bytes = 0, total_bytes = 0;
    CUresult result = CUDA_SUCCESS;
    CUgraph graph;
    CUevent event;
    char byte;

    sscanf(line, "%31s", name);
#define IS(what) (strcmp(name, what) == 0)
    if (IS("exit"))
        return 0;
    if (IS("init")) {
        result = cu.cuInit(0);
    } else if (IS("context")) {
        result = cu.cuDevicePrimaryCtxRetain(&context, 0);
        if (result == CUDA_SUCCESS && (result = cu.cuCtxSetCurrent(context)) == CUDA_SUCCESS)
            result = load();
    } else if (IS("create")) {
        result = cu.cuCtxCreate_v2(&context, 0, 0);
        if (result == CUDA_SUCCESS)
            result = load();
    } else if (IS("release")) {
        result = cu.cuDevicePrimaryCtxRelease_v2(0);
    } else if (IS("destroy")) {
        result = cu.cuCtxDestroy_v2(context);
    } else if (IS("launch")) {
        b = 1;
        sscanf(line, "%*s %llu %llu %lld %31s", &a, &b, &c, word);
        for (unsigned long long i = 0; more(i, b) && result == CUDA_SUCCESS; i++)
            result = launch(a, (int)c, word);
    } else if (IS("paced")) {
        sscanf(line, "%*s %llu %llu %lld", &a, &b, &c);
        for (unsigned long long i = 0; more(i, b) && result == CUDA_SUCCESS; i++) {
            result = launch(a, 0, "");
            usleep((useconds_t)c);
        }
    } else if (IS("brisk")) {
        /* Stops itself after each c launches, between two of them: outside of the driver. */
        sscanf(line, "%*s %llu %llu %lld", &a, &b, &c);
        for (unsigned long long i = 1; i <= b && result == CUDA_SUCCESS; i++) {
            const clock_t end = clock() + 5;

            result = launch(a, 0, "");
            while (clock() < end)
                ;
            if (i % (unsigned long long)c == 0)
                raise(SIGSTOP);
        }
    } else if (IS("spread")) {
        sscanf(line, "%*s %llu %llu", &a, &b);
        for (unsigned long long i = 0; more(i, b) && result == CUDA_SUCCESS; i++)
            result = launch(a, (int)(i % (unsigned long long)stream_count), "");
    } else if (IS("napping")) {
        /* Between its kernels the stream waits for a function of the host, for so long at least. */
        sscanf(line, "%*s %llu %llu %lld", &a, &b, &c);
        for (unsigned long long i = 0; more(i, b) && result == CUDA_SUCCESS; i++) {
            result = launch(a, 0, "");
            if (result == CUDA_SUCCESS)
                result = cu.cuLaunchHostFunc(streams[0], nap, (void *)(uintptr_t)c);
        }
    } else if (IS("loop")) {
        sscanf(line, "%*s %llu %llu", &a, &b);
        for (unsigned long long i = 0; more(i, b) && result == CUDA_SUCCESS; i++) {
            result = launch(a, 0, "");
            if (result == CUDA_SUCCESS)
                result = cu.cuCtxSynchronize();
        }
    } else if (IS("threads")) {
        sscanf(line, "%*s %lld %llu %llu", &c, &a, &b);
        result = in_threads(launch_all, (int)c, a, b);
    } else if (IS("stream")) {
        sscanf(line, "%*s %llu", &a);
        result = cu.cuStreamCreate(&streams[stream_count++], (unsigned int)a);
    } else if (IS("endstream")) {
        sscanf(line, "%*s %lld", &c);
        result = cu.cuStreamDestroy_v2(streams[c]);
    } else if (IS("sync")) {
        result = cu.cuCtxSynchronize();
    } else if (IS("streamsync")) {
        sscanf(line, "%*s %lld", &c);
        result = cu.cuStreamSynchronize(streams[c]);
    } else if (IS("events")) {
        /* How many there are in this process, the hook's with the program's own; it has none. */
        uint64_t (*live_events)(void) = (uint64_t (*)(void))dlsym(dlopen("libcuda.so.1", RTLD_NOW), "simgpu_live_events");

        printf("= 0 %llu\n", (unsigned long long)live_events());
        fflush(stdout);
        return 1;
    } else if (IS("eventsync")) {
        result = cu.cuEventCreate(&event, 0);
        if (result == CUDA_SUCCESS && (result = cu.cuEventRecord(event, NULL)) == CUDA_SUCCESS)
            result = cu.cuEventSynchronize(event);
    } else if (IS("join")) {
        /* What comes in the second stream follows what is in the first: if that captures, both do. */
        sscanf(line, "%*s %llu %lld", &a, &c);
        result = cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
        if (result == CUDA_SUCCESS && (result = cu.cuEventRecord(event, streams[a])) == CUDA_SUCCESS)
            result = cu.cuStreamWaitEvent(streams[c], event, 0);
    } else if (IS("capture")) {
        sscanf(line, "%*s %lld %llu", &c, &a);
        result = cu.cuStreamBeginCapture_v2(streams[c], (CUstreamCaptureMode)a);
    } else if (IS("endcapture")) {
        sscanf(line, "%*s %lld", &c);
        result = cu.cuStreamEndCapture(streams[c], &graph);
        if (result == CUDA_SUCCESS)
            result = cu.cuGraphInstantiateWithFlags(&graphs[graph_count++], graph, 0);
    } else if (IS("graph")) {
        sscanf(line, "%*s %llu %lld", &a, &c);
        result = cu.cuGraphLaunch(graphs[a], streams[c]);
    } else if (IS("churn")) {
        sscanf(line, "%*s %lld %llu %llu", &c, &a, &b);
        result = in_threads(allocate_and_free, (int)c, a, b);
    } else if (IS("alloc")) {
        sscanf(line, "%*s %31s %llu", word, &a);
        result = allocate(word, a, &blocks[block_count]);
        block_count += result == CUDA_SUCCESS;
    } else if (IS("free")) {
        sscanf(line, "%*s %llu", &a);
        result = cu.cuMemFree_v2(blocks[a]);
    } else if (IS("freeasync")) {
        sscanf(line, "%*s %llu", &a);
        result = cu.cuMemFreeAsync(blocks[a], NULL);
    } else if (IS("set")) {
        result = cu.cuMemsetD8_v2(blocks[0], 0, 1);
    } else if (IS("setasync")) {
        result = cu.cuMemsetD8Async(blocks[0], 0, 1, NULL);
    } else if (IS("fetch")) {
        result = cu.cuMemcpyDtoH_v2(&byte, blocks[0], 1);
    } else if (IS("info")) {
        result = cu.cuMemGetInfo_v2(&free_bytes, &total_bytes);
        printf("= %d %zu %zu\n", (int)result, free_bytes, total_bytes);
        return 1;
    } else if (IS("total")) {
        result = cu.cuDeviceTotalMem_v2(&total_bytes, 0);
        printf("= %d %zu\n", (int)result, total_bytes);
        return 1;
    } else if (IS("fork")) {
        result = in_child(line + strlen("fork "));
    } else if (IS("exec")) {
        execl("/proc/self/exe", "client", line + strlen("exec "), (char *)NULL);
    } else if (IS("daemon")) {
        closefrom(3);
    } else {
        result = (CUresult)-1;
    }
    printf("= %d\n", (int)result);
    return 1;
}
