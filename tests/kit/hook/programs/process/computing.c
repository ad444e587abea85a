/* A plugin of reload.c that is linked to the driver. */
#include <stdio.h>

#include "../must.h"
#include "workload/spin.h"

void begin(void);
void go_on(void);

/* The driver refuses these flags: it has not begun. BEGINS: it has, and nothing was made of it. */
void begin(void) {
#ifdef BEGINS
    MUST(cuInit(0));
#else
    (void)cuInit(1);
#endif
}

void go_on(void) {
    unsigned long long ns = 1000;
    void *parameters[] = {&ns};
    CUcontext context;
    CUmodule module;
    CUfunction spin;
    CUdeviceptr block;

    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    printf("too much: %d\n", (int)cuMemAlloc_v2(&block, (size_t)2 << 30));
    printf("enough: %d\n", (int)cuMemAlloc_v2(&block, (size_t)1 << 20));
    MUST(cuModuleLoadData(&module, SPIN_PTX));
    MUST(cuModuleGetFunction(&spin, module, "spin"));
    MUST(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    printf("launched: %d\n", (int)cuCtxSynchronize());
}
