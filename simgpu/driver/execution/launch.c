/* Launches: a kernel becomes an entry of the queue that takes as long as its image says. */
#include <string.h>

#include "driver/base/driver.h"
#include "driver/base/objects.h"
#include "driver/base/pace.h"
#include "driver/capture/capture.h"
#include "driver/context/context.h"
#include "driver/execution/launch.h"
#include "driver/module/code.h"
#include "driver/module/function.h"
#include "driver/module/module.h"
#include "driver/stream/queue.h"
#include "driver/stream/stream.h"

/* A parameter as an unsigned number, from the list of pointers that most callers give. */
static uint64_t pointed_param(const void *from, uint32_t index, uint32_t size) {
    uint64_t value = 0;
    memcpy(&value, ((void *const *)from)[index], size < sizeof value ? size : sizeof value);
    return value;
}

struct packed {
    const struct kernel *kernel;
    const char *bytes;
    size_t size;
};

static uint64_t packed_param(const void *from, uint32_t index, uint32_t size) {
    const struct packed *packed = from;
    uint64_t value = 0;
    uint32_t offset = packed->kernel->param[index].offset;
    if (offset + size <= packed->size)
        memcpy(&value, packed->bytes + offset, size < sizeof value ? size : sizeof value);
    return value;
}

static bool read_extra(void **extra, struct packed *packed) {
    for (int index = 0; extra[index] != CU_LAUNCH_PARAM_END; index += 2) {
        if (extra[index] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            packed->bytes = extra[index + 1];
        else if (extra[index] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            packed->size = *(size_t *)extra[index + 1];
        else
            return false;
    }
    return packed->bytes && packed->size;
}

CUresult launch_duration(struct CUfunc_st *function, const struct launch_shape *shape, void **params, void **extra,
                         uint32_t multiprocessors, uint64_t *duration_ns) {
    uint64_t threads = (uint64_t)shape->block[0] * shape->block[1] * shape->block[2];
    uint64_t blocks = (uint64_t)shape->grid[0] * shape->grid[1] * shape->grid[2];
    if (!threads || !blocks || threads > 1024 || shape->block[2] > 64 || shape->grid[0] > 2147483647u || shape->grid[1] > 65535 ||
        shape->grid[2] > 65535)
        return CUDA_ERROR_INVALID_VALUE;
    int most = function->max_dynamic_shared_bytes ? function->max_dynamic_shared_bytes : 49152;
    if (shape->shared_bytes > (unsigned int)most)
        return CUDA_ERROR_INVALID_VALUE;
    const struct kernel *kernel = function->kernel;
    if (params && extra)
        return CUDA_ERROR_INVALID_VALUE;
    if (extra) {
        struct packed packed = {.kernel = kernel};
        if (!read_extra(extra, &packed) || packed.size < kernel->param_bytes)
            return CUDA_ERROR_INVALID_VALUE;
        *duration_ns = ptx_duration_ns(kernel, blocks, threads, multiprocessors, packed_param, &packed);
        return CUDA_SUCCESS;
    }
    if (kernel->params && !params)
        return CUDA_ERROR_INVALID_VALUE;
    *duration_ns = ptx_duration_ns(kernel, blocks, threads, multiprocessors, pointed_param, params);
    return CUDA_SUCCESS;
}

uint32_t launch_place(const struct launch_shape *shape) {
    uint64_t blocks = (uint64_t)shape->grid[0] * shape->grid[1] * shape->grid[2];
    return blocks < SIMGPU_PLACE_UP ? (uint32_t)blocks : SIMGPU_PLACE_ALL;
}

CUresult launch_kernel(CUfunction handle, const struct launch_shape *shape, CUstream hStream, void **params, void **extra) {
    struct CUfunc_st *function;
    struct CUstream_st *stream;
    CUresult result = find_stream(hStream, &stream, __func__);
    if (result == CUDA_SUCCESS)
        result = find_function(handle, &function, __func__);
    if (result != CUDA_SUCCESS)
        return result;
    if (function->context && function->context != stream->context)
        return CUDA_ERROR_INVALID_HANDLE;
    uint64_t duration_ns;
    const struct simgpu_model *model = &driver.machine.shared->gpus[stream->context->gpu].model;
    result = launch_duration(function, shape, params, extra, model->multiprocessors, &duration_ns);
    if (result != CUDA_SUCCESS)
        return result;
    result = capture_check_legacy(stream);
    if (result == CUDA_SUCCESS)
        result = function_load(function, stream->context);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->capture)
        return capture_work(stream,
                            &(struct node_work){.kind = SIMGPU_KERNEL, .duration_ns = duration_ns, .place = launch_place(shape)});
    /* The GPU hears of it at the end of the call: what takes the time is writing the commands down. */
    pace_spend(pace_now()->launch_ns);
    return queue_push(stream, SIMGPU_KERNEL, duration_ns, launch_place(shape), NULL);
}

static CUresult do_cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                                  unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                                  unsigned int sharedMemBytes, CUstream hStream, void **kernelParams, void **extra) {
    struct launch_shape shape = {{gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, sharedMemBytes};
    return launch_kernel(f, &shape, hStream, kernelParams, extra);
}
EXPORT_PTSZ(cuLaunchKernel,
            (CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ, unsigned int blockDimX,
             unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream, void **kernelParams,
             void **extra),
            f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, hStream, kernelParams, extra)

static CUresult do_cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                                             unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                                             unsigned int sharedMemBytes, CUstream hStream, void **kernelParams) {
    CURRENT(context);
    const struct simgpu_model *model = &driver.machine.shared->gpus[context->gpu].model;
    uint64_t threads = (uint64_t)gridDimX * gridDimY * gridDimZ * blockDimX * blockDimY * blockDimZ;
    if (threads > (uint64_t)model->multiprocessors * model->threads_per_multiprocessor)
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    struct launch_shape shape = {{gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, sharedMemBytes};
    return launch_kernel(f, &shape, hStream, kernelParams, NULL);
}
EXPORT_PTSZ(cuLaunchCooperativeKernel,
            (CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ, unsigned int blockDimX,
             unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream, void **kernelParams),
            f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, hStream, kernelParams)

/* ---- the same kernel on several devices ---- */

/* Every device once, in a stream of its own, with one shape. */
static bool check_devices(const CUDA_LAUNCH_PARAMS *list, unsigned int count) {
    uint32_t seen = 0;
    for (unsigned int index = 0; index < count; index++) {
        const CUDA_LAUNCH_PARAMS *one = &list[index];
        if (!one->hStream || one->hStream == CU_STREAM_LEGACY || one->hStream == CU_STREAM_PER_THREAD ||
            !LIVES(one->hStream, MARK_STREAM) || !LIVES(one->function, MARK_FUNCTION))
            return false;
        uint32_t bit = 1u << one->hStream->context->device;
        if ((seen & bit) || one->gridDimX != list->gridDimX || one->gridDimY != list->gridDimY ||
            one->gridDimZ != list->gridDimZ || one->blockDimX != list->blockDimX || one->blockDimY != list->blockDimY ||
            one->blockDimZ != list->blockDimZ || one->sharedMemBytes != list->sharedMemBytes ||
            strcmp(one->function->kernel->name, list->function->kernel->name) != 0)
            return false;
        seen |= bit;
    }
    return true;
}

EXPORT CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *launchParamsList, unsigned int numDevices,
                                                     unsigned int flags) {
    /* The flags say which launches before and after it need not wait for all devices: here none do. */
    CHECK_DRIVER();
    if (!launchParamsList || !numDevices || numDevices > (unsigned int)driver.device_count || flags > 3 ||
        !check_devices(launchParamsList, numDevices))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    for (unsigned int index = 0; result == CUDA_SUCCESS && index < numDevices; index++) {
        const CUDA_LAUNCH_PARAMS *one = &launchParamsList[index];
        struct launch_shape shape = {
            {one->gridDimX, one->gridDimY, one->gridDimZ}, {one->blockDimX, one->blockDimY, one->blockDimZ}, one->sharedMemBytes};
        result = launch_kernel(one->function, &shape, one->hStream, one->kernelParams, NULL);
    }
    return result;
}

/* ---- with attributes ---- */

static CUresult launch_ex(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra,
                          CUstream default_stream) {
    CHECK_DRIVER();
    if (!config || (config->numAttrs && !config->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    struct launch_shape shape = {{config->gridDimX, config->gridDimY, config->gridDimZ},
                                 {config->blockDimX, config->blockDimY, config->blockDimZ},
                                 config->sharedMemBytes};
    return launch_kernel(f, &shape, config->hStream ? config->hStream : default_stream, kernelParams, extra);
}
EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra) {
    return launch_ex(config, f, kernelParams, extra, CU_STREAM_LEGACY);
}
EXPORT CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra) {
    return launch_ex(config, f, kernelParams, extra, CU_STREAM_PER_THREAD);
}
