/* A handler that calls CUDA at every instruction of the hook's own in calls that keep books of memory and contexts. Ends with a line
 * that says how many instructions there were. */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <ucontext.h>

#include "../hook_code.h"
#include "../must.h"

enum { TRAP_FLAG = 0x100, CALLS = 7 };

static unsigned long steps;

/* Each of them has books of its own. What is not there is refused by the driver. */
static void call(unsigned long number) {
    CUcontext context;
    CUmemoryPool pool;
    size_t bytes;

    switch (number % CALLS) {
    case 0: (void)cuMemRelease(0); break;
    case 1: (void)cuMemFree_v2(4096); break;
    case 2: MUST(cuDeviceGetDefaultMemPool(&pool, 0)); break;
    case 3: MUST(cuMemGetInfo_v2(&bytes, &bytes)); break;
    case 4:
        MUST(cuDevicePrimaryCtxRetain(&context, 0));
        MUST(cuDevicePrimaryCtxRelease_v2(0));
        break;
    case 5: (void)cuMemUnmap(4096, 4096); break;
    default: (void)cuMemFreeAsync(4096, NULL); break;
    }
}

static void step(int number, siginfo_t *info, void *place) {
    const uintptr_t at = (uintptr_t)((ucontext_t *)place)->uc_mcontext.gregs[REG_RIP];

    (void)number, (void)info;
    if (at >= hook_begin && at < hook_end)
        call(steps++);
}

static void single(bool on) {
    if (on)
        __asm__ volatile("pushfq; orq %0, (%%rsp); popfq" : : "i"(TRAP_FLAG) : "memory", "cc");
    else
        __asm__ volatile("pushfq; andq %0, (%%rsp); popfq" : : "i"(~TRAP_FLAG) : "memory", "cc");
}

static void books(void) {
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemGenericAllocationHandle handle;
    CUcontext context;
    CUmemoryPool pool;
    CUdeviceptr block;

    MUST(cuMemAllocAsync(&block, 1 << 20, NULL));
    MUST(cuMemFreeAsync(block, NULL));
    MUST(cuMemCreate(&handle, 2 << 20, &prop, 0));
    MUST(cuMemRelease(handle));
    MUST(cuDeviceGetDefaultMemPool(&pool, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuDevicePrimaryCtxRelease_v2(0));
}

int main(void) {
    const struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO};
    CUcontext context;

    (void)dl_iterate_phdr(find_hook, NULL);
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    books();
    (void)sigaction(SIGTRAP, &action, NULL);
    single(true);
    books();
    single(false);
    books();
    printf("%lu\n", steps);
    return 0;
}
