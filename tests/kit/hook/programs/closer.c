/* A program that has all its libraries by dlopen, and closes them while work is queued: the driver, and what else it is told
 * (argv) to open before it. Waits for a line, and begins anew. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "driver_api.h"
#include "workload/spin.h"

enum { LIBRARIES = 8 };

/* Who looks a name up in the global scope depends on what it found there, and that stays loaded. So the driver is asked
 * itself; but a hook that is not preloaded is found in the global scope alone. */
static void *where;

static void *must(void *pointer) {
    if (pointer == NULL) {
        printf("%s\n", dlerror());
        exit(1);
    }
    return pointer;
}

#define CALL(name, ...)                                                                \
    do {                                                                               \
        CUresult result = ((__typeof__(&name))must(dlsym(where, #name)))(__VA_ARGS__); \
        if (result != CUDA_SUCCESS) {                                                  \
            printf("%s answered %d\n", #name, (int)result);                            \
            exit(1);                                                                   \
        }                                                                              \
    } while (0)

static void work(int argc, char **argv) {
    unsigned long long ns = 20 * 1000 * 1000;
    void *libraries[LIBRARIES], *parameters[] = {&ns};
    CUcontext context;
    CUmodule module;
    CUfunction spin;

    for (int i = 1; i < argc; i++)
        libraries[i] = must(dlopen(argv[i], RTLD_NOW | RTLD_GLOBAL));
    libraries[0] = must(dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL));
    where = argc > 1 ? RTLD_DEFAULT : libraries[0];
    CALL(cuInit, 0);
    CALL(cuDevicePrimaryCtxRetain, &context, 0);
    CALL(cuCtxSetCurrent, context);
    CALL(cuModuleLoadData, &module, SPIN_PTX);
    CALL(cuModuleGetFunction, &spin, module, "spin");
    for (int i = 0; i < 3; i++)
        CALL(cuLaunchKernel, spin, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL);
    for (int i = 0; i < argc; i++)
        (void)dlclose(libraries[i]);
}

int main(int argc, char **argv) {
    if (argc > LIBRARIES)
        return 2;
    work(argc, argv);
    puts("waiting");
    (void)fflush(stdout);
    (void)getchar();
    work(argc, argv);
    puts("ok");
    return 0;
}
