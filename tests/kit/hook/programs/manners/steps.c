#ifdef __x86_64__
#include <signal.h>
#include <stdlib.h>
#include <ucontext.h>

#include "../hook_code.h"
#include "manners.h"

enum { TRAP_FLAG = 0x100 };
static unsigned long steps;

/* Runs after each instruction, and calls CUDA wherever that one was the hook's own: the driver is not at work then. */
static void step(int number, siginfo_t *info, void *place) {
    const uintptr_t at = (uintptr_t)((ucontext_t *)place)->uc_mcontext.gregs[REG_RIP];
    CUdeviceptr block;
    size_t bytes;

    (void)number, (void)info;
    if (at < hook_begin || at >= hook_end)
        return;
    steps++;
    if (function == NULL) {
        (void)launch(1);
        (void)cuMemAlloc_v2(&block, 4096);
        (void)cuCtxSynchronize();
    } else if (steps % 7 == 0) {
        GOOD(launch(1));
    } else if (steps % 7 == 3) {
        GOOD(cuMemAlloc_v2(&block, 4096));
        GOOD(cuMemFree_v2(block));
    } else if (steps % 7 == 5) {
        GOOD(cuCtxSynchronize());
    } else {
        GOOD(cuMemGetInfo_v2(&bytes, &bytes));
    }
}

/* A handler that calls CUDA, at every instruction of the hook. */
void at_each_step(void) {
    const struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO};
    CUdeviceptr block;

    (void)dl_iterate_phdr(find_hook, NULL);
    sigaction(SIGTRAP, &action, NULL);
    __asm__ volatile("pushfq; orq %0, (%%rsp); popfq" ::"i"(TRAP_FLAG) : "memory", "cc");
    (void)cuInit(0);
    __asm__ volatile("pushfq; andq %0, (%%rsp); popfq" ::"i"(~TRAP_FLAG) : "memory", "cc");
    start();
    work();
    __asm__ volatile("pushfq; orq %0, (%%rsp); popfq" ::"i"(TRAP_FLAG) : "memory", "cc");
    (void)launch(10);
    (void)launch(10);
    (void)cuMemAlloc_v2(&block, 1 << 20);
    (void)cuMemFree_v2(block);
    (void)cuCtxSynchronize();
    __asm__ volatile("pushfq; andq %0, (%%rsp); popfq" ::"i"(~TRAP_FLAG) : "memory", "cc");
    work();
    MUST((getenv("LD_PRELOAD")[0] != '\0') == (steps > 500));
}
#endif
