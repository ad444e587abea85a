/* Host functions: the queue stands still at one until it has returned. A thread of each context runs them, made at the
 * first one. */
#include <stdlib.h>

#include "driver/base/driver.h"
#include "driver/capture/capture.h"
#include "driver/context/context.h"
#include "driver/stream/host.h"
#include "driver/stream/memory_op.h"
#include "driver/stream/queue.h"
#include "driver/stream/stream.h"

struct job {
    uint64_t number; /* of the entry */
    uint32_t stream; /* its number; 0: the legacy stream */
    struct host_call call;
    struct job *next;
};

struct host_worker {
    struct CUctx_st *context;
    pthread_t thread;
    pthread_mutex_t order; /* of those who queue, who may have to wait for room */
    pthread_mutex_t lock;  /* for what follows */
    pthread_cond_t more;
    struct job *first, *last;
    struct job *running; /* it alone frees that */
    bool over;
};

static struct job *next_job(struct host_worker *worker) {
    pthread_mutex_lock(&worker->lock);
    while (!worker->first && !worker->over)
        pthread_cond_wait(&worker->more, &worker->lock);
    struct job *job = worker->first;
    if (job)
        worker->first = job->next;
    worker->running = job;
    pthread_mutex_unlock(&worker->lock);
    return job;
}

static void finish_job(struct host_worker *worker, struct job *job) {
    pthread_mutex_lock(&worker->lock);
    worker->running = NULL;
    pthread_mutex_unlock(&worker->lock);
    free(job);
}

static bool is_wait(const struct memory_op *op) { return op->kind == OP_WAIT || op->kind == OP_ACQUIRE; }

static bool is_ordered(const struct job *job, uint32_t stream) { return job->stream == stream || !job->stream || !stream; }

/* Streams do not overlap here, so a write behind another stream's wait, which may be for that very write, does not wait
 * for its turn; one behind a wait of its own stream does. */
static bool waited_for_elsewhere(struct host_worker *worker, uint32_t stream) {
    bool elsewhere = false, ordered = false;
    pthread_mutex_lock(&worker->lock);
    const struct job *job = worker->running ? worker->running : worker->first;
    while (job) {
        ordered |= is_wait(&job->call.op) && is_ordered(job, stream);
        elsewhere |= is_wait(&job->call.op);
        job = job == worker->running ? worker->first : job->next;
    }
    pthread_mutex_unlock(&worker->lock);
    return elsewhere && !ordered;
}

static void operate(struct host_worker *worker, const struct memory_op *op) {
    uint32_t seen;
    while (queue_error(worker->context) == CUDA_SUCCESS && !memory_op_try(op, &seen))
        memory_op_nap(op, seen);
}

static void *work(void *argument) {
    struct host_worker *worker = argument;
    struct CUctx_st *context = worker->context;
    for (struct job *job = next_job(worker); job; job = next_job(worker)) {
        CUresult result = queue_wait_turn(context, job->number, true);
        /* A callback is told of an error, a host function is not called. */
        if (job->call.op.kind != OP_NONE)
            operate(worker, &job->call.op);
        else if (job->call.callback)
            job->call.callback(job->call.stream, result, job->call.data);
        else if (result == CUDA_SUCCESS)
            job->call.function(job->call.data);
        context->shared->host_done_ns = clock_now_ns();
        store_u64(&context->shared->host_done, job->number + 1);
        finish_job(worker, job);
    }
    return NULL;
}

/* With the context locked. */
static struct host_worker *worker_of(struct CUctx_st *context) {
    if (context->host)
        return context->host;
    struct host_worker *worker = calloc(1, sizeof *worker);
    if (!worker)
        return NULL;
    worker->context = context;
    pthread_mutex_init(&worker->order, NULL);
    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->more, NULL);
    if (pthread_create(&worker->thread, NULL, work, worker) != 0) {
        pthread_cond_destroy(&worker->more);
        pthread_mutex_destroy(&worker->lock);
        pthread_mutex_destroy(&worker->order);
        free(worker);
        return NULL;
    }
    context->host = worker;
    return worker;
}

static void append(struct host_worker *worker, struct job *job) {
    pthread_mutex_lock(&worker->lock);
    if (worker->first)
        worker->last->next = job;
    else
        worker->first = job;
    worker->last = job;
    pthread_cond_signal(&worker->more);
    pthread_mutex_unlock(&worker->lock);
}

CUresult host_push(struct CUstream_st *stream, const struct host_call *call) {
    struct CUctx_st *context = stream->context;
    pthread_mutex_lock(&context->lock);
    struct host_worker *worker = worker_of(context);
    pthread_mutex_unlock(&context->lock);
    struct job *job = worker ? calloc(1, sizeof *job) : NULL;
    if (!job)
        return CUDA_ERROR_OUT_OF_MEMORY;
    job->call = *call;
    job->stream = stream->id;
    /* The order of the jobs is that of the entries. The worker goes on meanwhile: the queue may be full of its jobs. */
    pthread_mutex_lock(&worker->order);
    CUresult result = CUDA_SUCCESS;
    if (call->op.kind == OP_WRITE && waited_for_elsewhere(worker, stream->id)) {
        uint32_t seen;
        memory_op_try(&call->op, &seen);
        free(job);
        job = NULL;
    } else {
        result = queue_push(stream, SIMGPU_HOST, 0, SIMGPU_PLACE_ALL, &job->number);
    }
    if (job && result == CUDA_SUCCESS)
        append(worker, job);
    else
        free(job);
    pthread_mutex_unlock(&worker->order);
    return result;
}

void host_end(struct CUctx_st *context) {
    struct host_worker *worker = context->host;
    if (!worker)
        return;
    pthread_mutex_lock(&worker->lock);
    worker->over = true;
    pthread_cond_signal(&worker->more);
    pthread_mutex_unlock(&worker->lock);
    /* A host function must not call the driver; one that ends its own context would wait for itself. */
    if (!pthread_equal(worker->thread, pthread_self()))
        pthread_join(worker->thread, NULL);
    pthread_cond_destroy(&worker->more);
    pthread_mutex_destroy(&worker->lock);
    pthread_mutex_destroy(&worker->order);
    free(worker);
    context->host = NULL;
}

static CUresult call(CUstream handle, const struct host_call *wanted) {
    struct CUstream_st *stream;
    CUresult result = find_stream(handle, &stream, __func__);
    if (result != CUDA_SUCCESS)
        return result;
    if (!wanted->function && !wanted->callback)
        return CUDA_ERROR_INVALID_VALUE;
    result = capture_check_legacy(stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (!stream->capture)
        return host_push(stream, wanted);
    /* Callbacks, unlike host functions, cannot be captured. */
    if (wanted->callback)
        return capture_break(stream);
    return capture_work(stream, &(struct node_work){.kind = SIMGPU_HOST, .call = *wanted});
}

static CUresult do_cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data) {
    return call(stream, &(struct host_call){.function = function, .data = data});
}
EXPORT_PTSZ(cuLaunchHostFunc, (CUstream hStream, CUhostFn fn, void *userData), hStream, fn, userData)

static CUresult do_cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *data, unsigned int flags) {
    CHECK_DRIVER();
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    return call(stream, &(struct host_call){.callback = callback, .data = data, .stream = stream});
}
EXPORT_PTSZ(cuStreamAddCallback, (CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags), hStream,
            callback, userData, flags)
