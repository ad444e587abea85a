/* Calls each function of the driver that submits work, and some that only order it, by name: one name a line on stdin, one
 * answer a line on stdout ("= RESULT"). With no name to read it lists first all that it knows: "submits NAME", "orders NAME",
 * "absent NAME" where the driver has no such function. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver_api.h"
#include "workload/spin.h"

enum { BYTES = 4096, SIDE = 16 };

static void *driver;
static CUcontext context;
static CUstream stream;
static CUevent event;
static CUfunction function;
static CUgraph graph;
static CUgraphExec executable;
static CUarray array, other_array;
static CUdeviceptr a, b, managed;
static char host[BYTES];
static unsigned long long kernel_ns = 1000;
static void *kernel_arguments[] = {&kernel_ns};
static size_t sizes[] = {BYTES / 2, BYTES / 4}, indexes[] = {0}, failed;

static void nothing(void *data) { (void)data; }

static void nothing_more(CUstream of, CUresult status, void *data) {
    (void)of;
    (void)status;
    (void)data;
}

// clang-format off
static const CUDA_MEMCPY2D flat = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = host, .srcPitch = SIDE,
                                   .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = host + BYTES / 2, .dstPitch = SIDE,
                                   .WidthInBytes = SIDE, .Height = SIDE};
static const CUDA_MEMCPY3D deep = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = host, .srcPitch = SIDE, .srcHeight = SIDE,
                                   .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = host + BYTES / 2, .dstPitch = SIDE,
                                   .dstHeight = SIDE, .WidthInBytes = SIDE, .Height = SIDE, .Depth = 2};
static const CUDA_MEMCPY2D_v1 old_flat = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = host, .srcPitch = SIDE,
                                          .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = host + BYTES / 2,
                                          .dstPitch = SIDE, .WidthInBytes = SIDE, .Height = SIDE};
static const CUDA_MEMCPY3D_v1 old_deep = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = host, .srcPitch = SIDE,
                                          .srcHeight = SIDE, .dstMemoryType = CU_MEMORYTYPE_HOST,
                                          .dstHost = host + BYTES / 2, .dstPitch = SIDE, .dstHeight = SIDE,
                                          .WidthInBytes = SIDE, .Height = SIDE, .Depth = 2};
// clang-format on
static CUDA_MEMCPY3D_PEER peers;
static CUDA_LAUNCH_PARAMS devices[1];
static CUlaunchConfig config;
static CUdeviceptr to[2], from[2];
static CUmemcpyAttributes attributes[] = {{.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM}};
static CUDA_MEMCPY3D_BATCH_OP copies[1];
static CUmemDecompressParams parts[1];
static CUmemLocation places[] = {{.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
static CUDA_GRAPH_INSTANTIATE_PARAMS upload, no_upload;

/* ONE(name, arguments), PTSZ and PTDS also for the form of that ending. */
#define SUBMITS(ONE, PTSZ, PTDS)                                                                 \
    PTSZ(cuLaunchKernel, (function, 1, 1, 1, 1, 1, 1, 0, stream, kernel_arguments, NULL))        \
    PTSZ(cuLaunchKernelEx, (&config, function, kernel_arguments, NULL))                          \
    PTSZ(cuLaunchCooperativeKernel, (function, 1, 1, 1, 1, 1, 1, 0, stream, kernel_arguments))   \
    ONE(cuLaunchCooperativeKernelMultiDevice, (devices, 1, 0))                                   \
    ONE(cuLaunch, (function))                                                                    \
    ONE(cuLaunchGrid, (function, 1, 1))                                                          \
    ONE(cuLaunchGridAsync, (function, 1, 1, stream))                                             \
    PTSZ(cuGraphLaunch, (executable, stream))                                                    \
    PTSZ(cuGraphUpload, (executable, stream))                                                    \
    PTSZ(cuGraphInstantiateWithParams, (&(CUgraphExec){NULL}, graph, &upload))                   \
    PTDS(cuMemcpy, (a, b, BYTES))                                                                \
    PTDS(cuMemcpyPeer, (a, context, b, context, BYTES))                                          \
    PTDS(cuMemcpyHtoD_v2, (a, host, BYTES))                                                      \
    PTDS(cuMemcpyDtoH_v2, (host, a, BYTES))                                                      \
    PTDS(cuMemcpyDtoD_v2, (a, b, BYTES))                                                         \
    PTDS(cuMemcpyDtoA_v2, (array, 0, a, SIDE))                                                   \
    PTDS(cuMemcpyAtoD_v2, (a, array, 0, SIDE))                                                   \
    PTDS(cuMemcpyHtoA_v2, (array, 0, host, SIDE))                                                \
    PTDS(cuMemcpyAtoH_v2, (host, array, 0, SIDE))                                                \
    PTDS(cuMemcpyAtoA_v2, (array, 0, other_array, 0, SIDE))                                      \
    PTDS(cuMemcpy2D_v2, (&flat))                                                                 \
    PTDS(cuMemcpy2DUnaligned_v2, (&flat))                                                        \
    PTDS(cuMemcpy3D_v2, (&deep))                                                                 \
    PTDS(cuMemcpy3DPeer, (&peers))                                                               \
    PTSZ(cuMemcpyAsync, (a, b, BYTES, stream))                                                   \
    PTSZ(cuMemcpyPeerAsync, (a, context, b, context, BYTES, stream))                             \
    PTSZ(cuMemcpyHtoDAsync_v2, (a, host, BYTES, stream))                                         \
    PTSZ(cuMemcpyDtoHAsync_v2, (host, a, BYTES, stream))                                         \
    PTSZ(cuMemcpyDtoDAsync_v2, (a, b, BYTES, stream))                                            \
    PTSZ(cuMemcpyHtoAAsync_v2, (array, 0, host, SIDE, stream))                                   \
    PTSZ(cuMemcpyAtoHAsync_v2, (host, array, 0, SIDE, stream))                                   \
    PTSZ(cuMemcpy2DAsync_v2, (&flat, stream))                                                    \
    PTSZ(cuMemcpy3DAsync_v2, (&deep, stream))                                                    \
    PTSZ(cuMemcpy3DPeerAsync, (&peers, stream))                                                  \
    PTSZ(cuMemcpyBatchAsync, (to, from, sizes, 2, attributes, indexes, 1, &failed, stream))      \
    PTSZ(cuMemcpyBatchAsync_v2, (to, from, sizes, 2, attributes, indexes, 1, stream))            \
    PTSZ(cuMemcpy3DBatchAsync, (1, copies, &failed, 0, stream))                                  \
    PTSZ(cuMemcpy3DBatchAsync_v2, (1, copies, 0, stream))                                        \
    PTSZ(cuMemcpyWithAttributesAsync, (a, b, BYTES, attributes, stream))                         \
    PTSZ(cuMemcpy3DWithAttributesAsync, (copies, 0, stream))                                     \
    PTSZ(cuFabricCpyBatchAsync, (0, NULL, 0, stream))                                            \
    PTSZ(cuMemBatchDecompressAsync, (parts, 1, 0, &failed, stream))                              \
    PTSZ(cuMemPrefetchAsync, (managed, BYTES, 0, stream))                                        \
    PTSZ(cuMemPrefetchAsync_v2, (managed, BYTES, places[0], 0, stream))                          \
    PTSZ(cuMemPrefetchBatchAsync, (&managed, sizes, 1, places, indexes, 1, 0, stream))           \
    PTSZ(cuMemDiscardBatchAsync, (&managed, sizes, 1, 0, stream))                                \
    PTSZ(cuMemDiscardAndPrefetchBatchAsync, (&managed, sizes, 1, places, indexes, 1, 0, stream)) \
    PTDS(cuMemsetD8_v2, (a, 0, BYTES))                                                           \
    PTDS(cuMemsetD16_v2, (a, 0, BYTES / 2))                                                      \
    PTDS(cuMemsetD32_v2, (a, 0, BYTES / 4))                                                      \
    PTDS(cuMemsetD2D8_v2, (a, SIDE, 0, SIDE, SIDE))                                              \
    PTDS(cuMemsetD2D16_v2, (a, SIDE, 0, SIDE / 2, SIDE))                                         \
    PTDS(cuMemsetD2D32_v2, (a, SIDE, 0, SIDE / 4, SIDE))                                         \
    PTSZ(cuMemsetD8Async, (a, 0, BYTES, stream))                                                 \
    PTSZ(cuMemsetD16Async, (a, 0, BYTES / 2, stream))                                            \
    PTSZ(cuMemsetD32Async, (a, 0, BYTES / 4, stream))                                            \
    PTSZ(cuMemsetD2D8Async, (a, SIDE, 0, SIDE, SIDE, stream))                                    \
    PTSZ(cuMemsetD2D16Async, (a, SIDE, 0, SIDE / 2, SIDE, stream))                               \
    PTSZ(cuMemsetD2D32Async, (a, SIDE, 0, SIDE / 4, SIDE, stream))                               \
    ONE(cuMemcpyHtoD, ((CUdeviceptr_v1)a, host, SIDE))                                           \
    ONE(cuMemcpyDtoH, (host, (CUdeviceptr_v1)a, SIDE))                                           \
    ONE(cuMemcpyDtoD, ((CUdeviceptr_v1)a, (CUdeviceptr_v1)b, SIDE))                              \
    ONE(cuMemcpyDtoA, (array, 0, (CUdeviceptr_v1)a, SIDE))                                       \
    ONE(cuMemcpyAtoD, ((CUdeviceptr_v1)a, array, 0, SIDE))                                       \
    ONE(cuMemcpyHtoA, (array, 0, host, SIDE))                                                    \
    ONE(cuMemcpyAtoH, (host, array, 0, SIDE))                                                    \
    ONE(cuMemcpyAtoA, (array, 0, other_array, 0, SIDE))                                          \
    ONE(cuMemcpy2D, (&old_flat))                                                                 \
    ONE(cuMemcpy2DUnaligned, (&old_flat))                                                        \
    ONE(cuMemcpy3D, (&old_deep))                                                                 \
    ONE(cuMemcpyHtoDAsync, ((CUdeviceptr_v1)a, host, SIDE, stream))                              \
    ONE(cuMemcpyDtoHAsync, (host, (CUdeviceptr_v1)a, SIDE, stream))                              \
    ONE(cuMemcpyDtoDAsync, ((CUdeviceptr_v1)a, (CUdeviceptr_v1)b, SIDE, stream))                 \
    ONE(cuMemcpyHtoAAsync, (array, 0, host, SIDE, stream))                                       \
    ONE(cuMemcpyAtoHAsync, (host, array, 0, SIDE, stream))                                       \
    ONE(cuMemcpy2DAsync, (&old_flat, stream))                                                    \
    ONE(cuMemcpy3DAsync, (&old_deep, stream))                                                    \
    ONE(cuMemsetD8, ((CUdeviceptr_v1)a, 0, SIDE))                                                \
    ONE(cuMemsetD16, ((CUdeviceptr_v1)a, 0, SIDE))                                               \
    ONE(cuMemsetD32, ((CUdeviceptr_v1)a, 0, SIDE))                                               \
    ONE(cuMemsetD2D8, ((CUdeviceptr_v1)a, SIDE, 0, SIDE, SIDE))                                  \
    ONE(cuMemsetD2D16, ((CUdeviceptr_v1)a, SIDE, 0, SIDE / 2, SIDE))                             \
    ONE(cuMemsetD2D32, ((CUdeviceptr_v1)a, SIDE, 0, SIDE / 4, SIDE))

#define ORDERS(ONE, PTSZ)                                                         \
    PTSZ(cuEventRecord, (event, stream))                                          \
    PTSZ(cuEventRecordWithFlags, (event, stream, 0))                              \
    PTSZ(cuStreamWaitEvent, (stream, event, 0))                                   \
    PTSZ(cuLaunchHostFunc, (stream, nothing, NULL))                               \
    PTSZ(cuStreamAddCallback, (stream, nothing_more, NULL, 0))                    \
    PTSZ(cuStreamWaitValue32, (stream, a, 0, 0))                                  \
    PTSZ(cuStreamWaitValue32_v2, (stream, a, 0, 0))                               \
    PTSZ(cuStreamWaitValue64, (stream, a, 0, 0))                                  \
    PTSZ(cuStreamWaitValue64_v2, (stream, a, 0, 0))                               \
    PTSZ(cuStreamWriteValue32, (stream, b, 1, 0))                                 \
    PTSZ(cuStreamWriteValue32_v2, (stream, b, 1, 0))                              \
    PTSZ(cuStreamWriteValue64, (stream, b, 1, 0))                                 \
    PTSZ(cuStreamWriteValue64_v2, (stream, b, 1, 0))                              \
    PTSZ(cuStreamBatchMemOp, (stream, 0, NULL, 0))                                \
    PTSZ(cuStreamBatchMemOp_v2, (stream, 0, NULL, 0))                             \
    PTSZ(cuStreamAttachMemAsync, (stream, managed, 0, CU_MEM_ATTACH_GLOBAL))      \
    PTSZ(cuStreamQuery, (stream))                                                 \
    PTSZ(cuStreamSynchronize, (stream))                                           \
    ONE(cuCtxSynchronize, ())                                                     \
    ONE(cuEventSynchronize, (event))                                              \
    ONE(cuGraphInstantiateWithFlags, (&(CUgraphExec){NULL}, graph, 0))            \
    PTSZ(cuGraphInstantiateWithParams, (&(CUgraphExec){NULL}, graph, &no_upload)) \
    PTSZ(cuMemFreeAsync, (0, stream))

#define BY_NAME(name) ((__typeof__(&name))dlsym(driver, #name))

#define DO(kind, name, arguments) \
    static CUresult kind##_##name(void) { return BY_NAME(name) arguments; }
#define DO_SUBMIT(name, arguments) DO(submits, name, arguments)
#define DO_SUBMIT_PTSZ(name, arguments) DO_SUBMIT(name, arguments) DO_SUBMIT(name##_ptsz, arguments)
#define DO_SUBMIT_PTDS(name, arguments) DO_SUBMIT(name, arguments) DO_SUBMIT(name##_ptds, arguments)
#define DO_ORDER(name, arguments) DO(orders, name, arguments)
#define DO_ORDER_PTSZ(name, arguments) DO_ORDER(name, arguments) DO_ORDER(name##_ptsz, arguments)
SUBMITS(DO_SUBMIT, DO_SUBMIT_PTSZ, DO_SUBMIT_PTDS)
ORDERS(DO_ORDER, DO_ORDER_PTSZ)

#define LIST_SUBMIT(name, arguments) {"submits", #name, submits_##name},
#define LIST_SUBMIT_PTSZ(name, arguments) LIST_SUBMIT(name, ) LIST_SUBMIT(name##_ptsz, )
#define LIST_SUBMIT_PTDS(name, arguments) LIST_SUBMIT(name, ) LIST_SUBMIT(name##_ptds, )
#define LIST_ORDER(name, arguments) {"orders", #name, orders_##name},
#define LIST_ORDER_PTSZ(name, arguments) LIST_ORDER(name, ) LIST_ORDER(name##_ptsz, )
static const struct {
    const char *kind, *name;
    CUresult (*call)(void);
} calls[] = {SUBMITS(LIST_SUBMIT, LIST_SUBMIT_PTSZ, LIST_SUBMIT_PTDS) ORDERS(LIST_ORDER, LIST_ORDER_PTSZ)};

static void check(CUresult result, const char *what) {
    if (result == CUDA_SUCCESS)
        return;
    fprintf(stderr, "%s: %d\n", what, (int)result);
    exit(4);
}

#define CHECK(name, arguments) check(BY_NAME(name) == NULL ? CUDA_ERROR_NOT_FOUND : BY_NAME(name) arguments, #name)

/* Nothing here submits. */
static void set_up(void) {
    CUDA_ARRAY_DESCRIPTOR descriptor = {.Width = SIDE, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
    CUmodule module;

    CHECK(cuInit, (0));
    CHECK(cuDevicePrimaryCtxRetain, (&context, 0));
    CHECK(cuCtxSetCurrent, (context));
    CHECK(cuStreamCreate, (&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuEventCreate, (&event, 0));
    CHECK(cuModuleLoadData, (&module, SPIN_PTX));
    CHECK(cuModuleGetFunction, (&function, module, "spin"));
    CHECK(cuMemAlloc_v2, (&a, BYTES));
    CHECK(cuMemAlloc_v2, (&b, BYTES));
    CHECK(cuMemAllocManaged, (&managed, BYTES, CU_MEM_ATTACH_GLOBAL));
    CHECK(cuArrayCreate_v2, (&array, &descriptor));
    CHECK(cuArrayCreate_v2, (&other_array, &descriptor));
    config = (CUlaunchConfig){
        .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1, .hStream = stream};
    devices[0] = (CUDA_LAUNCH_PARAMS){.function = function,
                                      .gridDimX = 1,
                                      .gridDimY = 1,
                                      .gridDimZ = 1,
                                      .blockDimX = 1,
                                      .blockDimY = 1,
                                      .blockDimZ = 1,
                                      .hStream = stream,
                                      .kernelParams = kernel_arguments};
    peers = (CUDA_MEMCPY3D_PEER){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                 .srcDevice = a,
                                 .srcContext = context,
                                 .srcPitch = SIDE,
                                 .srcHeight = SIDE,
                                 .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                 .dstDevice = b,
                                 .dstContext = context,
                                 .dstPitch = SIDE,
                                 .dstHeight = SIDE,
                                 .WidthInBytes = SIDE,
                                 .Height = SIDE,
                                 .Depth = 1};
    to[0] = a, to[1] = a + BYTES / 2, from[0] = b, from[1] = b + BYTES / 2;
    copies[0] = (CUDA_MEMCPY3D_BATCH_OP){.src = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER, .op.ptr.ptr = a},
                                         .dst = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER, .op.ptr.ptr = b},
                                         .extent = {SIDE, SIDE, 1},
                                         .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    parts[0] = (CUmemDecompressParams){
        .srcNumBytes = SIDE, .dstNumBytes = SIDE, .src = host, .dst = host, .algo = CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE};
    upload = (CUDA_GRAPH_INSTANTIATE_PARAMS){.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD, .hUploadStream = stream};
    CHECK(cuStreamBeginCapture_v2, (stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK(cuLaunchKernel, (function, 1, 1, 1, 1, 1, 1, 0, stream, kernel_arguments, NULL));
    CHECK(cuStreamEndCapture, (stream, &graph));
    CHECK(cuGraphInstantiateWithFlags, (&executable, graph, 0));
    /* The oldest launches take their arguments apart. */
    if (BY_NAME(cuParamSetv) != NULL) {
        CHECK(cuFuncSetBlockShape, (function, 1, 1, 1));
        CHECK(cuParamSetSize, (function, sizeof(kernel_ns)));
        CHECK(cuParamSetv, (function, 0, &kernel_ns, sizeof(kernel_ns)));
    }
}

int main(void) {
    char line[128];

    setvbuf(stdout, NULL, _IOLBF, 0);
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver == NULL)
        return 3;
    set_up();
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        printf("%s %s\n", dlsym(driver, calls[i].name) != NULL ? calls[i].kind : "absent", calls[i].name);
    printf("ready\n");
    while (fgets(line, sizeof(line), stdin) != NULL) {
        char kind[16] = "", name[96] = "";

        sscanf(line, "%15s %95s", kind, name);
        for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
            if (strcmp(calls[i].kind, kind) == 0 && strcmp(calls[i].name, name) == 0)
                printf("= %d\n", (int)calls[i].call());
        }
    }
    return 0;
}
