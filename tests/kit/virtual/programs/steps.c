#include "client.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { HOST_BYTES = 1 << 20, HOST_MEMORY_BYTES = 1 << 15 };

/* Which kernel is next: drawn by weight, the same sequence in every run. */
static uint32_t draw(struct thread *thread) {
    const struct client *client = thread->client;
    uint32_t left, index = 0;
    /* Marsaglia's xorshift, 64 bits. */
    thread->random ^= thread->random << 13;
    thread->random ^= thread->random >> 7;
    thread->random ^= thread->random << 17;
    left = (uint32_t)(thread->random % client->weights);
    while (left >= client->kernels[index].weight)
        left -= client->kernels[index++].weight;
    return index;
}

static CUresult launch_kernel(struct client *client, uint32_t index, CUstream stream) {
    const struct kernel *kernel = &client->kernels[index];
    uint64_t length_ns = kernel->duration_ns;
    void *parameters[] = {&length_ns};
    return client->cuLaunchKernel(client->functions[kernel->function], kernel->blocks, 1, 1, 32, 1, 1, 0, stream, parameters,
                                  NULL);
}

static CUresult launch(struct thread *thread, const struct step *step) {
    struct client *client = thread->client;
    CUresult result = CUDA_SUCCESS;
    for (uint32_t i = 0; i < step->count && result == CUDA_SUCCESS; i++) {
        const uint32_t index = step->object == ANY ? draw(thread) : step->object;
        if (client->launch_ns > 0)
            vt_spend(client->launch_ns);
        result = launch_kernel(client, index, client->streams[step->stream]);
        client->outcome.launches++;
        client->outcome.asked_ns += client->kernels[index].duration_ns;
    }
    return result;
}

static CUresult launch_graph(struct client *client, const struct step *step) {
    struct graph *graph = &client->graphs[step->object];
    CUresult result = CUDA_SUCCESS;
    for (uint32_t i = 0; graph->exec != NULL && i < step->count && result == CUDA_SUCCESS; i++) {
        if (client->launch_ns > 0)
            vt_spend(client->launch_ns);
        result = client->cuGraphLaunch(graph->exec, client->streams[step->stream]);
        client->outcome.launches++;
        client->outcome.asked_ns += graph->duration_ns;
    }
    return result;
}

static CUresult capture(struct client *client, const struct step *step) {
    struct graph *graph = &client->graphs[step->object];
    CUstream stream = client->streams[step->stream];
    CUresult result;
    if (graph->exec != NULL)
        return CUDA_SUCCESS;
    result = client->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    for (uint32_t i = 0; i < step->count && result == CUDA_SUCCESS; i++)
        result = launch_kernel(client, (uint32_t)step->amount, stream);
    if (result == CUDA_SUCCESS)
        result = client->cuStreamEndCapture(stream, &graph->graph);
    if (result == CUDA_SUCCESS)
        result = client->cuGraphInstantiateWithFlags(&graph->exec, graph->graph, 0);
    graph->duration_ns = step->count * client->kernels[step->amount].duration_ns;
    return result;
}

static CUresult drop_graph(struct client *client, struct graph *graph) {
    CUresult result;
    if (graph->exec == NULL)
        return CUDA_SUCCESS;
    result = client->cuGraphExecDestroy(graph->exec);
    if (result == CUDA_SUCCESS)
        result = client->cuGraphDestroy(graph->graph);
    *graph = (struct graph){NULL, NULL, 0};
    return result;
}

static CUresult query(struct client *client, const struct step *step) {
    CUresult result;
    while ((result = client->cuStreamQuery(client->streams[step->stream])) == CUDA_ERROR_NOT_READY)
        vt_sleep(step->amount);
    return result;
}

static CUresult allocate(struct client *client, const struct step *step) {
    struct buffer *buffer = &client->buffers[step->object];
    CUresult result;
    if (buffer->place != 0)
        return CUDA_SUCCESS;
    result = step->kind == STEP_ALLOC ? client->cuMemAlloc_v2(&buffer->place, step->amount)
                                      : client->cuMemAllocAsync(&buffer->place, step->amount, client->streams[step->stream]);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        client->outcome.refused++;
        buffer->place = 0;
        return CUDA_SUCCESS;
    }
    if (result == CUDA_SUCCESS) {
        buffer->bytes = step->amount;
        client->outcome.held_bytes += (int64_t)step->amount;
    }
    return result;
}

static CUresult release(struct client *client, const struct step *step) {
    struct buffer *buffer = &client->buffers[step->object];
    const struct buffer given = *buffer;
    if (given.place == 0)
        return CUDA_SUCCESS;
    client->outcome.held_bytes -= (int64_t)given.bytes;
    *buffer = (struct buffer){0, 0};
    return step->kind == STEP_FREE ? client->cuMemFree_v2(given.place)
                                   : client->cuMemFreeAsync(given.place, client->streams[step->stream]);
}

/* What is copied nobody reads: all of the host's buffer is the same few pages again and again, which stay in the processor's
 * cache. Where they cannot be had each page is one of its own. */
static char *host_buffer(void) {
    static char host[HOST_BYTES] __attribute__((aligned(4096)));
    static bool shared;
    if (!shared) {
        shared = true;
        if (mmap(host, HOST_MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == host)
            for (char *at = host + HOST_MEMORY_BYTES; at < host + HOST_BYTES; at += HOST_MEMORY_BYTES)
                (void)mremap(host, 0, HOST_MEMORY_BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, at);
    }
    return host;
}

static CUresult transfer(struct client *client, const struct step *step) {
    const struct buffer *buffer = &client->buffers[step->object];
    const CUstream stream = client->streams[step->stream];
    size_t bytes = step->amount < buffer->bytes ? step->amount : buffer->bytes;
    char *const host = host_buffer();
    if (bytes > HOST_BYTES)
        bytes = HOST_BYTES;
    if (bytes == 0)
        return CUDA_SUCCESS;
    switch (step->kind) {
    case STEP_UPLOAD: return client->cuMemcpyHtoD_v2(buffer->place, host, bytes);
    case STEP_DOWNLOAD: return client->cuMemcpyDtoH_v2(host, buffer->place, bytes);
    case STEP_FETCH: return client->cuMemcpyDtoHAsync_v2(host, buffer->place, bytes, stream);
    default: return client->cuMemsetD8Async(buffer->place, 1, bytes, stream);
    }
}

static CUresult renew_stream(struct client *client, CUstream *stream, bool blocking) {
    const CUresult result = client->cuStreamDestroy_v2(*stream);
    if (result != CUDA_SUCCESS)
        return result;
    return client->cuStreamCreate(stream, blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING);
}

static void sleep_in_stream(void *for_ns) { vt_sleep((uint64_t)(uintptr_t)for_ns); }

static CUresult run_step(struct thread *thread, const struct step *step) {
    struct client *client = thread->client;
    const CUstream stream = client->streams[step->stream];
    switch (step->kind) {
    case STEP_LAUNCH: return launch(thread, step);
    case STEP_GRAPH: return launch_graph(client, step);
    case STEP_CAPTURE: return capture(client, step);
    case STEP_DROP_GRAPH: return drop_graph(client, &client->graphs[step->object]);
    case STEP_WAIT: return client->cuCtxSynchronize();
    case STEP_WAIT_STREAM: return client->cuStreamSynchronize(stream);
    case STEP_QUERY_STREAM: return query(client, step);
    case STEP_RECORD: return client->cuEventRecord(client->events[step->object], stream);
    case STEP_WAIT_EVENT: return client->cuEventSynchronize(client->events[step->object]);
    case STEP_ORDER: return client->cuStreamWaitEvent(stream, client->events[step->object], 0);
    case STEP_ALLOC:
    case STEP_ALLOC_ASYNC: return allocate(client, step);
    case STEP_FREE:
    case STEP_FREE_ASYNC: return release(client, step);
    case STEP_UPLOAD:
    case STEP_DOWNLOAD:
    case STEP_FETCH:
    case STEP_FILL: return transfer(client, step);
    case STEP_RENEW_STREAM: return renew_stream(client, &client->streams[step->stream], step->amount != 0);
    case STEP_THINK: vt_sleep(step->amount); return CUDA_SUCCESS;
    case STEP_DUE: vt_sleep(step->amount - vt_now() % step->amount); return CUDA_SUCCESS;
    case STEP_HOST: return client->cuLaunchHostFunc(stream, sleep_in_stream, (void *)(uintptr_t)step->amount);
    case STEP_COMPUTE: vt_spend(step->amount); return CUDA_SUCCESS;
    case STEP_TAKE: vt_sem_wait(&client->turns[step->object]); return CUDA_SUCCESS;
    case STEP_PASS: vt_sem_post(&client->turns[step->object]); return CUDA_SUCCESS;
    case STEP_ROUND: client->outcome.rounds++; return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

void run_steps(struct thread *thread) {
    uint32_t at = 0;
    while (at < thread->count && thread->steps[at].kind != STEP_END) {
        const struct step *step = &thread->steps[at];
        if (!client_checks(thread->client, run_step(thread, step), step->kind))
            return;
        at++;
        if (at == thread->count)
            at = thread->again;
    }
}
