/* Semaphores of others: eight bytes of a file in memory. A binary one is 0 or 1, a timeline counts up. */
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver/base/driver.h"
#include "driver/base/objects.h"
#include "driver/capture/capture.h"
#include "driver/context/context.h"
#include "driver/stream/host.h"
#include "driver/stream/stream.h"

struct CUextSemaphore_st {
    enum mark mark;
    bool timeline;
    uint64_t *value;
};

static struct object_pool objects = {.lock = PTHREAD_MUTEX_INITIALIZER};

EXPORT CUresult cuImportExternalSemaphore(CUexternalSemaphore *extSem_out,
                                          const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *semHandleDesc) {
    CURRENT(context);
    (void)context;
    if (!extSem_out || !semHandleDesc || semHandleDesc->flags)
        return CUDA_ERROR_INVALID_VALUE;
    bool timeline = semHandleDesc->type == CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD;
    if (!timeline && semHandleDesc->type != CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD)
        return CUDA_ERROR_NOT_SUPPORTED;
    struct stat status;
    int fd = semHandleDesc->handle.fd;
    if (fstat(fd, &status) != 0 || status.st_size < (off_t)sizeof(uint64_t))
        return CUDA_ERROR_OPERATING_SYSTEM;
    void *memory = mmap(NULL, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    struct CUextSemaphore_st *made = memory == MAP_FAILED ? NULL : object_make(&objects, sizeof *made);
    if (!made) {
        if (memory != MAP_FAILED)
            munmap(memory, sizeof(uint64_t));
        return memory == MAP_FAILED ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_ERROR_OUT_OF_MEMORY;
    }
    *made = (struct CUextSemaphore_st){.mark = MARK_SEMAPHORE, .timeline = timeline, .value = memory};
    /* From here on the descriptor is the driver's. */
    close(fd);
    *extSem_out = made;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDestroyExternalSemaphore(CUexternalSemaphore extSem) {
    CHECK_DRIVER();
    if (!LIVES(extSem, MARK_SEMAPHORE))
        return CUDA_ERROR_INVALID_HANDLE;
    munmap(extSem->value, sizeof(uint64_t));
    object_drop(&objects, extSem);
    return CUDA_SUCCESS;
}

static CUresult submit(CUstream handle, const CUexternalSemaphore *semaphores, unsigned int count, const void *params,
                       struct memory_op (*op_of)(const struct CUextSemaphore_st *, const void *, unsigned int)) {
    struct CUstream_st *stream;
    CUresult result = find_stream(handle, &stream, __func__);
    if (result != CUDA_SUCCESS)
        return result;
    if (!semaphores || !params || !count)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int index = 0; index < count; index++) {
        if (!LIVES(semaphores[index], MARK_SEMAPHORE))
            return CUDA_ERROR_INVALID_HANDLE;
    }
    result = capture_check_legacy(stream);
    for (unsigned int index = 0; result == CUDA_SUCCESS && index < count; index++) {
        struct host_call call = {.op = op_of(semaphores[index], params, index)};
        result = stream->capture ? capture_work(stream, &(struct node_work){.kind = SIMGPU_HOST, .call = call})
                                 : host_push(stream, &call);
    }
    return result;
}

static struct memory_op signal_op(const struct CUextSemaphore_st *semaphore, const void *params, unsigned int index) {
    const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *own = (const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *)params + index;
    return (struct memory_op){.kind = OP_WRITE,
                              .bytes = 8,
                              .address = (uintptr_t)semaphore->value,
                              .value = semaphore->timeline ? own->params.fence.value : 1};
}

static struct memory_op wait_op(const struct CUextSemaphore_st *semaphore, const void *params, unsigned int index) {
    const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *own = (const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *)params + index;
    return (struct memory_op){.kind = semaphore->timeline ? OP_WAIT : OP_ACQUIRE,
                              .bytes = 8,
                              .compare = CU_STREAM_WAIT_VALUE_GEQ,
                              .address = (uintptr_t)semaphore->value,
                              .value = own->params.fence.value};
}

EXPORT CUresult cuSignalExternalSemaphoresAsync(const CUexternalSemaphore *extSemArray,
                                                const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *paramsArray, unsigned int numExtSems,
                                                CUstream stream) {
    return submit(stream, extSemArray, numExtSems, paramsArray, signal_op);
}
EXPORT CUresult cuSignalExternalSemaphoresAsync_ptsz(const CUexternalSemaphore *extSemArray,
                                                     const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *paramsArray,
                                                     unsigned int numExtSems, CUstream stream) {
    return submit(stream ? stream : CU_STREAM_PER_THREAD, extSemArray, numExtSems, paramsArray, signal_op);
}
EXPORT CUresult cuWaitExternalSemaphoresAsync(const CUexternalSemaphore *extSemArray,
                                              const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *paramsArray, unsigned int numExtSems,
                                              CUstream stream) {
    return submit(stream, extSemArray, numExtSems, paramsArray, wait_op);
}
EXPORT CUresult cuWaitExternalSemaphoresAsync_ptsz(const CUexternalSemaphore *extSemArray,
                                                   const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *paramsArray,
                                                   unsigned int numExtSems, CUstream stream) {
    return submit(stream ? stream : CU_STREAM_PER_THREAD, extSemArray, numExtSems, paramsArray, wait_op);
}
