#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client.h"

static CUgraphExec graphs[MANY];
static int graph_count;

/* ---- contexts ---- */

static CUresult init(struct said *said) {
    (void)said;
    return cu.cuInit(0);
}

static CUresult primary_context(struct said *said) {
    CUresult result = cu.cuDevicePrimaryCtxRetain(&context, 0);

    (void)said;
    if (result == CUDA_SUCCESS)
        result = cu.cuCtxSetCurrent(context);
    return result == CUDA_SUCCESS ? load() : result;
}

static CUresult own_context(struct said *said) {
    const CUresult result = cu.cuCtxCreate_v2(&context, 0, 0);

    (void)said;
    return result == CUDA_SUCCESS ? load() : result;
}

static CUresult release(struct said *said) {
    (void)said;
    return cu.cuDevicePrimaryCtxRelease_v2(0);
}

static CUresult destroy(struct said *said) {
    (void)said;
    return cu.cuCtxDestroy_v2(context);
}

/* ---- launches: a us each, b of them ---- */

static CUresult launches(struct said *said) {
    CUresult result = CUDA_SUCCESS;

    for (unsigned long long i = 0; more(i, said->b) && result == CUDA_SUCCESS; i++)
        result = launch(said->a, (int)said->c, said->word);
    return result;
}

static CUresult paced(struct said *said) {
    CUresult result = CUDA_SUCCESS;

    for (unsigned long long i = 0; more(i, said->b) && result == CUDA_SUCCESS; i++) {
        result = launch(said->a, 0, "");
        usleep((useconds_t)said->c);
    }
    return result;
}

/* Stops itself after each c launches, between two of them: outside of the driver. */
static CUresult brisk(struct said *said) {
    CUresult result = CUDA_SUCCESS;

    for (unsigned long long i = 1; i <= said->b && result == CUDA_SUCCESS; i++) {
        const clock_t end = clock() + 5;

        result = launch(said->a, 0, "");
        while (clock() < end)
            ;
        if (i % (unsigned long long)said->c == 0)
            raise(SIGSTOP);
    }
    return result;
}

static CUresult spread(struct said *said) {
    CUresult result = CUDA_SUCCESS;

    for (unsigned long long i = 0; more(i, said->b) && result == CUDA_SUCCESS; i++)
        result = launch(said->a, (int)(i % (unsigned long long)stream_count), "");
    return result;
}

/* A function of the host that sleeps. */
static void nap(void *us) { usleep((useconds_t)(uintptr_t)us); }

/* Between its kernels the stream waits for a function of the host, for c us at least. */
static CUresult napping(struct said *said) {
    CUresult result = CUDA_SUCCESS;

    for (unsigned long long i = 0; more(i, said->b) && result == CUDA_SUCCESS; i++) {
        result = launch(said->a, 0, "");
        if (result == CUDA_SUCCESS)
            result = cu.cuLaunchHostFunc(streams[0], nap, (void *)(uintptr_t)said->c);
    }
    return result;
}

static CUresult loop(struct said *said) {
    CUresult result = CUDA_SUCCESS;

    for (unsigned long long i = 0; more(i, said->b) && result == CUDA_SUCCESS; i++) {
        result = launch(said->a, 0, "");
        if (result == CUDA_SUCCESS)
            result = cu.cuCtxSynchronize();
    }
    return result;
}

static CUresult threads(struct said *said) { return in_threads(launch_all, (int)said->c, said->a, said->b); }

/* ---- streams, events and graphs ---- */

static CUresult stream(struct said *said) { return cu.cuStreamCreate(&streams[stream_count++], (unsigned int)said->a); }

static CUresult end_stream(struct said *said) { return cu.cuStreamDestroy_v2(streams[said->c]); }

static CUresult synchronize(struct said *said) {
    (void)said;
    return cu.cuCtxSynchronize();
}

static CUresult synchronize_stream(struct said *said) { return cu.cuStreamSynchronize(streams[said->c]); }

/* How many there are in this process, the hook's with the program's own; it has none. */
static CUresult events(struct said *said) {
    uint64_t (*live_events)(void) = (uint64_t (*)(void))dlsym(dlopen("libcuda.so.1", RTLD_NOW), "simgpu_live_events");

    snprintf(said->more, sizeof(said->more), " %llu", (unsigned long long)live_events());
    return CUDA_SUCCESS;
}

static CUresult synchronize_event(struct said *said) {
    CUevent event;
    CUresult result = cu.cuEventCreate(&event, 0);

    (void)said;
    if (result == CUDA_SUCCESS)
        result = cu.cuEventRecord(event, NULL);
    return result == CUDA_SUCCESS ? cu.cuEventSynchronize(event) : result;
}

/* What comes in the second stream follows what is in the first: if that captures, both do. */
static CUresult join(struct said *said) {
    CUevent event;
    CUresult result = cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);

    if (result == CUDA_SUCCESS)
        result = cu.cuEventRecord(event, streams[said->a]);
    return result == CUDA_SUCCESS ? cu.cuStreamWaitEvent(streams[said->c], event, 0) : result;
}

static CUresult capture(struct said *said) { return cu.cuStreamBeginCapture_v2(streams[said->c], (CUstreamCaptureMode)said->a); }

static CUresult end_capture(struct said *said) {
    CUgraph graph;
    const CUresult result = cu.cuStreamEndCapture(streams[said->c], &graph);

    return result == CUDA_SUCCESS ? cu.cuGraphInstantiateWithFlags(&graphs[graph_count++], graph, 0) : result;
}

static CUresult launch_graph(struct said *said) { return cu.cuGraphLaunch(graphs[said->a], streams[said->c]); }

/* ---- the process ---- */

/* The child does the commands that follow, separated by ';', and ends; its answers come before the parent's. */
static CUresult in_child(struct said *said) {
    int status = -1;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        for (char *line = strtok(said->rest, ";"); line != NULL; line = strtok(NULL, ";"))
            run(line);
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, &status, 0);
    return (CUresult)status;
}

static CUresult execute(struct said *said) {
    execl("/proc/self/exe", "client", said->rest, (char *)NULL);
    return CUDA_SUCCESS;
}

static CUresult close_all(struct said *said) {
    (void)said;
    closefrom(3);
    return CUDA_SUCCESS;
}

/* Which of a, b, c and the word follow a name, in that order; B: b, and 1 where it is not said. */
static const struct command {
    const char *name, *order;
    CUresult (*run)(struct said *said);
} COMMANDS[] = {
    {"init", "", init},
    {"context", "", primary_context},
    {"create", "", own_context},
    {"release", "", release},
    {"destroy", "", destroy},
    {"launch", "aBcw", launches},
    {"paced", "abc", paced},
    {"brisk", "abc", brisk},
    {"spread", "ab", spread},
    {"napping", "abc", napping},
    {"loop", "ab", loop},
    {"threads", "cab", threads},
    {"stream", "a", stream},
    {"endstream", "c", end_stream},
    {"sync", "", synchronize},
    {"streamsync", "c", synchronize_stream},
    {"events", "", events},
    {"eventsync", "", synchronize_event},
    {"join", "ac", join},
    {"capture", "ca", capture},
    {"endcapture", "c", end_capture},
    {"graph", "ac", launch_graph},
    {"churn", "cab", churn},
    {"alloc", "wa", get_block},
    {"free", "a", free_block},
    {"freeasync", "a", free_block_async},
    {"set", "", set_block},
    {"setasync", "", set_block_async},
    {"fetch", "", fetch_block},
    {"info", "", memory_info},
    {"total", "", memory_total},
    {"fork", "", in_child},
    {"exec", "", execute},
    {"daemon", "", close_all},
};

static struct said read_as(const struct command *command, char *rest) {
    struct said said = {.b = strchr(command->order, 'B') != NULL, .rest = rest};
    const char *place = rest;
    char word[32];
    int length;

    for (const char *which = command->order; *which != '\0' && sscanf(place, "%31s%n", word, &length) == 1; which++) {
        place += length;
        switch (*which) {
        case 'a': said.a = strtoull(word, NULL, 10); break;
        case 'b':
        case 'B': said.b = strtoull(word, NULL, 10); break;
        case 'c': said.c = strtoll(word, NULL, 10); break;
        default: memcpy(said.word, word, sizeof(word));
        }
    }
    return said;
}

int run(char *line) {
    char name[32] = "";
    CUresult result = (CUresult)-1;
    struct said said = {0};
    int length = 0;

    sscanf(line, "%31s%n", name, &length);
    if (strcmp(name, "exit") == 0)
        return 0;
    for (size_t i = 0; i < sizeof(COMMANDS) / sizeof(COMMANDS[0]); i++) {
        if (strcmp(name, COMMANDS[i].name) == 0) {
            said = read_as(&COMMANDS[i], line + length + (line[length] == ' '));
            result = COMMANDS[i].run(&said);
        }
    }
    printf("= %d%s\n", (int)result, said.more);
    return 1;
}
