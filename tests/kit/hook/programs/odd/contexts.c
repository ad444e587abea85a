#include "odd.h"

void contexts(void) {
    CUcontext made;

    start();
    for (int round = 0; round < 40; round++) {
        CUfunction function;

        MUST(cuCtxCreate_v2(&made, round % 2 ? CU_CTX_SCHED_BLOCKING_SYNC : 0, 0));
        function = load();
        for (int number = 0; number < 5; number++)
            MUST(launch(function, 20 * US, NULL));
        if (round % 3)
            MUST(cuCtxSynchronize());
        MUST(cuCtxDestroy_v2(made));
    }
    MUST(cuCtxSetCurrent(context));
    MUST(launch(spin, MS, NULL));
    SAY(cuCtxSynchronize());
    for (int round = 0; round < 20; round++) {
        CUcontext again;

        MUST(cuDevicePrimaryCtxRetain(&again, 0));
        MUST(cuDevicePrimaryCtxRelease_v2(0));
    }
    SAY(cuDevicePrimaryCtxReset_v2(0));
    SAY(launch(NULL, MS, NULL));
}

void both_kinds_of_context(void) {
    CUcontext made, popped;
    CUfunction function;

    start();
    MUST(cuCtxCreate_v2(&made, 0, 0));
    function = load();
    for (int round = 0; round < 50; round++) {
        MUST(launch(function, 50 * US, NULL));
        MUST(cuCtxPushCurrent_v2(context));
        MUST(launch(spin, 50 * US, NULL));
        MUST(cuCtxPopCurrent_v2(&popped));
        if (round % 10 == 9)
            MUST(cuCtxSynchronize());
    }
    printf("the other context's function: %d\n", (int)launch(spin, US, NULL));
    SAY(cuCtxDestroy_v2(made));
    MUST(cuCtxSetCurrent(context));
    SAY(cuCtxSynchronize());
}

void two_gpus(void) {
    CUcontext of[2];
    CUfunction function[2];
    CUdeviceptr memory[2];
    char text[8] = "";
    int count;

    MUST(cuInit(0));
    MUST(cuDeviceGetCount(&count));
    printf("devices: %d\n", count);
    for (int device = 0; device < 2; device++) {
        MUST(cuDevicePrimaryCtxRetain(&of[device], device));
        MUST(cuCtxSetCurrent(of[device]));
        function[device] = load();
        MUST(cuMemAlloc_v2(&memory[device], 1 << 20));
    }
    for (int round = 0; round < 200; round++) {
        MUST(cuCtxSetCurrent(of[round % 2]));
        MUST(launch(function[round % 2], 100 * US, NULL));
    }
    MUST(cuCtxSetCurrent(of[0]));
    MUST(cuMemcpyHtoD_v2(memory[0], "copied", 7));
    MUST(cuMemcpyPeer(memory[1], of[1], memory[0], of[0], 7));
    MUST(cuCtxSetCurrent(of[1]));
    MUST(cuMemcpyDtoH_v2(text, memory[1], 7));
    printf("%s\n", text);
    for (int device = 0; device < 2; device++) {
        MUST(cuCtxSetCurrent(of[device]));
        SAY(cuCtxSynchronize());
    }
}
