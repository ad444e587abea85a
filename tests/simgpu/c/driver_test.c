/* The driver under many threads of one process, with the sanitizers watching. argv[1]: an empty directory. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver_api.h"
#include "machine/machine.h"
#include "property.h"
#include "workload/spin.h"

#define ROUNDS 600
#define THREADS 4

#define OK(call)                                                                      \
    do {                                                                              \
        CUresult code = (call);                                                       \
        if (code != CUDA_SUCCESS) {                                                   \
            fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, (int)code); \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)

static CUcontext context;
static CUfunction spin;
static uint64_t launched_ns; /* by all threads */
static uint64_t called;      /* host functions */

static void launch(CUfunction function, CUstream stream, uint64_t length_ns) {
    void *params[] = {&length_ns};
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
    __atomic_add_fetch(&launched_ns, length_ns, __ATOMIC_RELAXED);
}

static void count_call(void *data) { __atomic_add_fetch((uint64_t *)data, 1, __ATOMIC_RELAXED); }

/* Streams, events, copies and allocations in a context that all threads share. */
static void *share(void *argument) {
    unsigned int seed = (unsigned int)(uintptr_t)argument;
    CUstream stream;
    CUevent begin, end;
    char data[256], back[256];
    float milliseconds;
    OK(cuCtxSetCurrent(context));
    for (int round = 0; round < ROUNDS; round++) {
        CUdeviceptr memory;
        size_t size = 256 + (size_t)rand_r(&seed) % 100000;
        OK(cuStreamCreate(&stream, round % 2));
        OK(cuEventCreate(&begin, 0));
        OK(cuEventCreate(&end, round % 3 ? 0 : CU_EVENT_BLOCKING_SYNC));
        OK(cuMemAlloc_v2(&memory, size));
        memset(data, round, sizeof data);
        OK(cuEventRecord(begin, stream));
        for (int index = 0; index < 10; index++)
            launch(spin, index % 3 ? stream : CU_STREAM_PER_THREAD, (uint64_t)rand_r(&seed) % 20000);
        OK(cuMemcpyHtoDAsync_v2(memory, data, sizeof data, stream));
        OK(cuMemcpyDtoHAsync_v2(back, memory, sizeof back, stream));
        OK(cuEventRecord(end, stream));
        OK(cuStreamWaitEvent(CU_STREAM_PER_THREAD, end, 0));
        if (round % 10 == 0)
            OK(cuLaunchHostFunc(stream, count_call, &called));
        CUresult ready = cuEventQuery(end);
        REQUIRE(ready == CUDA_SUCCESS || ready == CUDA_ERROR_NOT_READY);
        OK(round % 4 ? cuEventSynchronize(end) : cuStreamSynchronize(stream));
        OK(cuEventElapsedTime(&milliseconds, begin, end));
        REQUIRE(milliseconds > 0 && memcmp(data, back, sizeof data) == 0);
        OK(cuMemFree_v2(memory));
        OK(cuEventDestroy_v2(begin));
        OK(cuEventDestroy_v2(end));
        OK(cuStreamDestroy_v2(stream));
    }
    return NULL;
}

/* Contexts of a thread's own, that come and go with all that is in them. */
static void *come_and_go(void *argument) {
    (void)argument;
    for (int round = 0; round < ROUNDS / 5; round++) {
        CUcontext own;
        CUmodule module;
        CUfunction function;
        CUstream stream;
        CUgraph graph;
        CUgraphExec exec;
        CUdeviceptr memory, global;
        OK(cuCtxCreate_v2(&own, 0, 1));
        OK(cuModuleLoadData(&module, SPIN_PTX));
        OK(cuModuleGetFunction(&function, module, "spin"));
        REQUIRE(cuModuleGetGlobal_v2(&global, NULL, module, "none") == CUDA_ERROR_NOT_FOUND);
        OK(cuMemAlloc_v2(&memory, 4096));
        OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
        void *params[] = {&(uint64_t){1000}};
        OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
        OK(cuLaunchHostFunc(stream, count_call, &called));
        OK(cuStreamEndCapture(stream, &graph));
        OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
        OK(cuGraphLaunch(exec, stream));
        OK(cuGraphLaunch(exec, stream));
        OK(cuGraphExecDestroy(exec));
        OK(cuGraphDestroy(graph));
        if (round % 2)
            OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
        OK(cuCtxDestroy_v2(own));
    }
    return NULL;
}

/* Physical memory, exported and imported, mapped and unmapped. */
static void map_and_unmap(void) {
    const size_t size = (size_t)4 << 20;
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle, again;
    CUdeviceptr range;
    char data[8] = "1234567";
    int fd;
    OK(cuMemCreate(&handle, size, &prop, 0));
    OK(cuMemAddressReserve(&range, 2 * size, 0, 0, 0));
    OK(cuMemMap(range + size, size, 0, handle, 0));
    OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    OK(cuMemRelease(handle));
    OK(cuMemImportFromShareableHandle(&again, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(fd);
    OK(cuMemSetAccess(range + size, size, &access, 1));
    OK(cuMemcpyHtoD_v2(range + size, data, sizeof data));
    OK(cuMemUnmap(range + size, size));
    OK(cuMemMap(range, size, 0, again, 0));
    OK(cuMemSetAccess(range, size, &access, 1));
    OK(cuMemRelease(again));
    memset(data, 0, sizeof data);
    OK(cuMemcpyDtoH_v2(data, range, sizeof data));
    REQUIRE(strcmp(data, "1234567") == 0);
    OK(cuMemUnmap(range, size));
    OK(cuMemAddressFree(range, 2 * size));
}

/* A graph that allocates, and arrays and values on the way. */
static void run_graph(CUstream stream, CUdeviceptr word) {
    CUgraph graph;
    CUgraphExec exec;
    CUdeviceptr memory;
    CUarray array;
    CUDA_ARRAY_DESCRIPTOR plane = {64, 64, CU_AD_FORMAT_FLOAT, 1};
    OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuMemAllocAsync(&memory, 100000, stream));
    OK(cuMemsetD8Async(memory, 1, 1000, stream));
    OK(cuStreamWriteValue32_v2(stream, word, 1, 0));
    OK(cuStreamWaitValue32_v2(stream, word, 1, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuMemFreeAsync(memory, stream));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuArrayCreate_v2(&array, &plane));
    OK(cuStreamSynchronize(stream));
    OK(cuGraphLaunch(exec, stream));
    OK(cuArrayDestroy(array));
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuDeviceGraphMemTrim(0));
}

/* Memory of every kind, in the context that all threads share. */
static void *remember(void *argument) {
    (void)argument;
    CUstream stream;
    CUdeviceptr word;
    OK(cuCtxSetCurrent(context));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc_v2(&word, 8));
    for (int round = 0; round < ROUNDS / 5; round++) {
        CUdeviceptr first, second;
        OK(cuMemAllocAsync(&first, 1000000, stream));
        map_and_unmap();
        OK(cuMemAllocAsync(&second, 3000000, stream));
        OK(cuMemFreeAsync(first, stream));
        run_graph(stream, word);
        OK(cuMemFreeAsync(second, stream));
        OK(cuStreamSynchronize(stream));
    }
    OK(cuMemFree_v2(word));
    OK(cuStreamDestroy_v2(stream));
    return NULL;
}

static void make_machine(const char *directory) {
    struct simgpu_plan plan = {.gpu_count = 2, .scheduling = SIMGPU_TIMESLICE, .cuda_version = 12040};
    for (int index = 0; index < 2; index++) {
        plan.models[index] = (struct simgpu_model){
            .name = "test", .memory_bytes = 8ull << 30, .multiprocessors = 4, .threads_per_multiprocessor = 1024};
        snprintf(plan.uuids[index], sizeof plan.uuids[index], "GPU-%d", index);
    }
    REQUIRE(machine_create(directory, &plan) == 0);
    setenv("SIMGPU_MACHINE", directory, 1);
}

int main(int argc, char **argv) {
    REQUIRE(argc == 2);
    make_machine(argv[1]);
    CUmodule module;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuModuleLoadData(&module, SPIN_PTX));
    OK(cuModuleGetFunction(&spin, module, "spin"));
    pthread_t threads[THREADS + 3];
    for (int index = 0; index < THREADS; index++)
        REQUIRE(pthread_create(&threads[index], NULL, share, (void *)(uintptr_t)(index + 1)) == 0);
    REQUIRE(pthread_create(&threads[THREADS], NULL, come_and_go, NULL) == 0);
    for (int index = THREADS + 1; index < THREADS + 3; index++)
        REQUIRE(pthread_create(&threads[index], NULL, remember, NULL) == 0);
    for (int index = 0; index < THREADS + 3; index++)
        pthread_join(threads[index], NULL);
    OK(cuCtxSynchronize());
    OK(cuModuleUnload(module));
    OK(cuDeviceGraphMemTrim(0));
    size_t free_bytes, total_bytes;
    OK(cuMemGetInfo_v2(&free_bytes, &total_bytes));
    REQUIRE(free_bytes == total_bytes);
    OK(cuDevicePrimaryCtxRelease_v2(0));
    REQUIRE(called == THREADS * (ROUNDS / 10) + 2 * (ROUNDS / 5));
    struct machine machine;
    REQUIRE(machine_open(&machine, NULL) == MACHINE_OK);
    uint64_t copies_ns = 0, kernels_ns = 0;
    const struct simgpu_gpu *gpu = &machine.shared->gpus[0];
    for (uint64_t number = 0; number < gpu->log_count; number++)
        *(gpu->log[number].kind == SIMGPU_KERNEL ? &kernels_ns : &copies_ns) +=
            gpu->log[number].end_ns - gpu->log[number].begin_ns;
    REQUIRE(kernels_ns == launched_ns && copies_ns > 0);
    return 0;
}
