/* A CUDA program that does what it is told: one command a line on stdin, one answer a line on stdout ("= result …", with
 * the driver's result first). argv[1] says through which door it finds the driver's functions. */
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "driver_api.h"
#include "workload/spin.h"

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

#define MEMBER(symbol, name) __typeof__(&symbol) symbol;
static struct {
    FUNCTIONS(MEMBER)
} cu;

enum { MANY = 4096 };
static CUcontext context;
static CUfunction function;
static CUstream streams[MANY];
static CUgraphExec graphs[MANY];
static CUdeviceptr blocks[MANY];
static int stream_count = 1, graph_count, block_count; /* stream 0 is the default one */

static void *look_up(void *library, const char *door, const char *symbol, const char *name) {
    void *found = NULL;

    if (strcmp(door, "dlsym") == 0)
        return dlsym(library, symbol);
    if (strcmp(door, "dlvsym") == 0)
        return dlvsym(library, symbol, "CUDA");
    if (strcmp(door, "default") == 0)
        return dlsym(RTLD_DEFAULT, symbol);
    if (strcmp(door, "next") == 0)
        return dlsym(RTLD_NEXT, symbol);
    if (strcmp(door, "getproc") == 0) {
        __typeof__(&cuGetProcAddress) ask = (__typeof__(&cuGetProcAddress))dlsym(library, "cuGetProcAddress");

        return ask != NULL && ask(name, &found, 12000, CU_GET_PROC_ADDRESS_DEFAULT) == CUDA_SUCCESS ? found : NULL;
    } else {
        const cuuint64_t flags =
            strcmp(door, "getproc_ptsz") == 0 ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : CU_GET_PROC_ADDRESS_DEFAULT;
        __typeof__(&cuGetProcAddress_v2) ask = (__typeof__(&cuGetProcAddress_v2))dlsym(library, "cuGetProcAddress_v2");
        CUdriverProcAddressQueryResult status;

        return ask != NULL && ask(name, &found, 12000, flags, &status) == CUDA_SUCCESS ? found : NULL;
    }
}

static int find_functions(const char *door) {
    void *library;

#ifdef LINKED
    if (strcmp(door, "linked") == 0) {
#define LINK(symbol, name) cu.symbol = symbol;
        FUNCTIONS(LINK)
        return 0;
    }
#endif
    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (library == NULL) {
        printf("! %s\n", dlerror());
        return -1;
    }
#define LOOK_UP(symbol, name) *(void **)&cu.symbol = look_up(library, door, #symbol, #name);
    FUNCTIONS(LOOK_UP)
#define CHECK(symbol, name)                     \
    if (cu.symbol == NULL) {                    \
        printf("! %s is not there\n", #symbol); \
        return -1;                              \
    }
    FUNCTIONS(CHECK)
    return 0;
}

static CUresult load(void) {
    CUmodule module;
    CUresult result = cu.cuModuleLoadData(&module, SPIN_PTX);

    return result != CUDA_SUCCESS ? result : cu.cuModuleGetFunction(&function, module, "spin");
}

static CUresult launch(unsigned long long us, int stream, const char *how) {
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

/* Whether there is more to do after so much of a count; where that is 0, until the next command is there. */
static int more(unsigned long long done, unsigned long long count) {
    struct pollfd next = {.fd = STDIN_FILENO, .events = POLLIN};

    return count > 0 ? done < count : poll(&next, 1, 0) == 0;
}

/* A function of the host that sleeps. */
static void nap(void *us) { usleep((useconds_t)(uintptr_t)us); }

struct job {
    unsigned long long us, count;
    int stream;
    CUresult result;
};

static void *work(void *data) {
    struct job *job = data;

    job->result = cu.cuCtxSetCurrent(context);
    for (unsigned long long i = 0; more(i, job->count) && job->result == CUDA_SUCCESS; i++)
        job->result = launch(job->us, job->stream, "");
    return NULL;
}

static CUresult in_threads(int threads, unsigned long long us, unsigned long long count) {
    pthread_t ids[64];
    struct job jobs[64];
    CUresult result = CUDA_SUCCESS;

    for (int i = 0; i < threads; i++) {
        jobs[i] = (struct job){us, count, i < stream_count ? i : 0, CUDA_SUCCESS};
        pthread_create(&ids[i], NULL, work, &jobs[i]);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        if (jobs[i].result != CUDA_SUCCESS)
            result = jobs[i].result;
    }
    return result;
}

/* Allocates and frees at once: what each thread gets is another size, so that it is now allowed, now asked for. What does
 * not fit is no error here. */
static void *allocate_and_free(void *data) {
    struct job *job = data;

    job->result = cu.cuCtxSetCurrent(context);
    for (unsigned long long i = 1; i <= job->count && job->result == CUDA_SUCCESS; i++) {
        const int which = (int)(i % 3);
        CUdeviceptr block;
        size_t pitch;

        job->result = which == 0   ? cu.cuMemAlloc_v2(&block, job->us * (size_t)i)
                      : which == 1 ? cu.cuMemAllocPitch_v2(&block, &pitch, 1024, job->us / 1024, 4)
                                   : cu.cuMemAllocAsync(&block, job->us, NULL);
        if (job->result == CUDA_SUCCESS)
            job->result = which == 2 ? cu.cuMemFreeAsync(block, NULL) : cu.cuMemFree_v2(block);
        else if (job->result == CUDA_ERROR_OUT_OF_MEMORY)
            job->result = CUDA_SUCCESS;
    }
    return NULL;
}

static CUresult churn(int threads, unsigned long long bytes, unsigned long long count) {
    pthread_t ids[64];
    struct job jobs[64];
    CUresult result = CUDA_SUCCESS;

    for (int i = 0; i < threads; i++) {
        jobs[i] = (struct job){bytes, count, 0, CUDA_SUCCESS};
        pthread_create(&ids[i], NULL, allocate_and_free, &jobs[i]);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        if (jobs[i].result != CUDA_SUCCESS)
            result = jobs[i].result;
    }
    return result;
}

static CUresult allocate(const char *kind, size_t bytes, CUdeviceptr *block) {
    size_t pitch;

    if (strcmp(kind, "pitch") == 0)
        return cu.cuMemAllocPitch_v2(block, &pitch, bytes / 1024, 1024, 4);
    if (strcmp(kind, "managed") == 0)
        return cu.cuMemAllocManaged(block, bytes, CU_MEM_ATTACH_GLOBAL);
    if (strcmp(kind, "async") == 0)
        return cu.cuMemAllocAsync(block, bytes, NULL);
    if (strcmp(kind, "nowhere") == 0)
        return cu.cuMemAlloc_v2(NULL, bytes);
    return cu.cuMemAlloc_v2(block, bytes);
}

static int run(char *line);

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

/* Does one command; 0 at the end. "launch", "paced", "spread", "napping", "loop" and "threads" launch so many kernels, or,
 * where 0 is asked for, kernels until the next command is there. */
static int run(char *line) {
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
        result = in_threads((int)c, a, b);
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
        result = churn((int)c, a, b);
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

int main(int argc, char **argv) {
    char line[4096];

    setvbuf(stdout, NULL, _IOLBF, 0);
    setvbuf(stdin, NULL, _IONBF, 0);
    if (argc < 2 || find_functions(argv[1]) != 0)
        return 3;
    printf("ready\n");
    while (fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (!run(line))
            break;
    }
    return 0;
}
