/* Stream capture: while a stream is captured its work becomes nodes of a graph, and some calls are not allowed. */
#include "driver/capture/capture.h"
#include "driver/base/driver.h"
#include "driver/capture/nodes.h"
#include "driver/context/context.h"

#include <stdlib.h>

/* All captures of the process. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct capture *captures;
static uint64_t last_id;

static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
    CHECK_DRIVER();
    if (!mode || (unsigned int)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

/* ---- what a capture forbids ---- */

/* Whether a call that may be unsafe is forbidden to this thread by a capture ("CUDA Driver API", the modes of
 * cuThreadExchangeStreamCaptureMode). */
static bool forbids(const struct capture *capture) {
    bool own = pthread_equal(capture->thread, pthread_self());
    if (own && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED)
        return true;
    return !own && thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult capture_check_unsafe(void) {
    CUresult result = CUDA_SUCCESS;
    if (!__atomic_load_n(&captures, __ATOMIC_ACQUIRE) || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    for (struct capture *capture = captures; capture; capture = capture->next) {
        if (forbids(capture)) {
            capture->invalid = true;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    pthread_mutex_unlock(&lock);
    return result;
}

/* Voids every capture of the context that begins in a stream which the legacy stream waits for (`blocking`), or any. */
static bool void_captures(const struct CUctx_st *context, bool blocking) {
    bool found = false;
    if (!__atomic_load_n(&captures, __ATOMIC_ACQUIRE))
        return false;
    pthread_mutex_lock(&lock);
    for (struct capture *capture = captures; capture; capture = capture->next) {
        if (capture->origin->context == context && (!blocking || !(capture->origin->flags & CU_STREAM_NON_BLOCKING))) {
            capture->invalid = true;
            found = true;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

CUresult capture_check_legacy(struct CUstream_st *stream) {
    if (stream != &stream->context->legacy || !void_captures(stream->context, true))
        return CUDA_SUCCESS;
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

CUresult capture_check_context(const struct CUctx_st *context) {
    return void_captures(context, false) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult capture_break(struct CUstream_st *stream) {
    stream->capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

/* ---- what becomes of calls on a capturing stream ---- */

/* The stream is captured from here on. The end of another stream's capture looks at all of a context's streams. */
static void join(struct CUstream_st *stream, struct capture *capture) {
    pthread_mutex_lock(&stream->context->lock);
    stream->capture = capture;
    stream->joined = false;
    pthread_mutex_unlock(&stream->context->lock);
}

CUresult capture_work(struct CUstream_st *stream, const struct node_work *work) {
    if (stream->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    stream->joined = false;
    return graph_add(stream->capture->graph, work, NULL);
}

CUresult capture_record(struct CUstream_st *stream, struct CUevent_st *event) {
    if (stream->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    pthread_mutex_lock(&stream->context->lock);
    event->capture = stream->capture;
    event->captured = stream;
    pthread_mutex_unlock(&stream->context->lock);
    return CUDA_SUCCESS;
}

CUresult capture_wait(struct CUstream_st *stream, struct CUevent_st *event) {
    if (!event->capture) {
        /* A dependency on work outside the graph. */
        stream->capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (stream->capture && stream->capture != event->capture) {
        stream->capture->invalid = event->capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    if (event->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream == &stream->context->legacy) {
        event->capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    join(stream, event->capture);
    if (event->captured != event->capture->origin)
        event->captured->joined = true;
    return CUDA_SUCCESS;
}

/* ---- begin and end ---- */

CUresult capture_begin(struct CUstream_st *stream, CUstreamCaptureMode mode, struct CUgraph_st *given) {
    if ((unsigned int)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream == &stream->context->legacy)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    struct capture *capture = calloc(1, sizeof *capture);
    struct CUgraph_st *graph = given ? given : capture ? graph_make() : NULL;
    if (!capture || !graph) {
        free(capture);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    capture->graph = graph;
    capture->given = given != NULL;
    capture->origin = stream;
    capture->mode = mode;
    capture->thread = pthread_self();
    pthread_mutex_lock(&lock);
    capture->id = ++last_id;
    capture->next = captures;
    __atomic_store_n(&captures, capture, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    join(stream, capture);
    return CUDA_SUCCESS;
}

/* Takes the streams and events out of a capture. Returns whether a stream has work that nothing waits for. */
static bool leave(struct capture *capture) {
    struct CUctx_st *context = capture->origin->context;
    bool unjoined = false;
    pthread_mutex_lock(&context->lock);
    for (struct CUstream_st *stream = context->streams; stream; stream = stream->next) {
        if (stream->capture == capture) {
            unjoined |= stream != capture->origin && !stream->joined;
            stream->capture = NULL;
        }
    }
    for (struct CUevent_st *event = context->events; event; event = event->next) {
        if (event->capture == capture)
            event->capture = NULL;
    }
    pthread_mutex_unlock(&context->lock);
    return unjoined;
}

static void unlink_capture(struct capture *capture) {
    struct capture **link = &captures;
    while (*link != capture)
        link = &(*link)->next;
    __atomic_store_n(link, capture->next, __ATOMIC_RELEASE);
}

void capture_forget(const struct CUctx_st *context, const struct CUstream_st *stream) {
    struct capture *capture = NULL;
    do {
        if (capture) {
            leave(capture);
            if (!capture->given)
                graph_free(capture->graph);
            free(capture);
        }
        pthread_mutex_lock(&lock);
        for (capture = captures; capture; capture = capture->next) {
            if (stream ? capture->origin == stream : capture->origin->context == context) {
                unlink_capture(capture);
                break;
            }
        }
        pthread_mutex_unlock(&lock);
    } while (capture);
}

CUresult capture_end(struct CUstream_st *stream, struct CUgraph_st **graph) {
    struct capture *capture = stream->capture;
    *graph = NULL;
    if (!capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != stream)
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(capture->thread, pthread_self()))
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    bool unjoined = leave(capture);
    pthread_mutex_lock(&lock);
    unlink_capture(capture);
    pthread_mutex_unlock(&lock);
    CUresult result = capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                      : unjoined       ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
                                       : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS)
        *graph = capture->graph;
    else if (!capture->given)
        graph_free(capture->graph);
    free(capture);
    return result;
}
