#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "client.h"

struct functions cu;

static void *look_up(void *library, const char *door, const char *symbol, const char *name) {
    void *found = NULL;

    if (strcmp(door, "dlsym") == 0)
        return dlsym(library, symbol);
    if (strcmp(door, "dlvsym") == 0)
        return dlvsym(library, symbol, "CUDA");
    if (strcmp(door, "default") == 0)
        return dlsym(RTLD_DEFAULT, symbol);
    if (strcmp(door, "next") == 0)
        return dlsym(RTLD_NEXT, symbol);
    if (strcmp(door, "getproc") == 0) {
        __typeof__(&cuGetProcAddress) ask = (__typeof__(&cuGetProcAddress))dlsym(library, "cuGetProcAddress");

        return ask != NULL && ask(name, &found, 12000, CU_GET_PROC_ADDRESS_DEFAULT) == CUDA_SUCCESS ? found : NULL;
    } else {
        const cuuint64_t flags =
            strcmp(door, "getproc_ptsz") == 0 ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : CU_GET_PROC_ADDRESS_DEFAULT;
        __typeof__(&cuGetProcAddress_v2) ask = (__typeof__(&cuGetProcAddress_v2))dlsym(library, "cuGetProcAddress_v2");
        CUdriverProcAddressQueryResult status;

        return ask != NULL && ask(name, &found, 12000, flags, &status) == CUDA_SUCCESS ? found : NULL;
    }
}

int find_functions(const char *door) {
    void *library;

#ifdef LINKED
    if (strcmp(door, "linked") == 0) {
#define LINK(symbol, name) cu.symbol = symbol;
        FUNCTIONS(LINK)
        return 0;
    }
#endif
    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (library == NULL) {
        printf("! %s\n", dlerror());
        return -1;
    }
#define LOOK_UP(symbol, name) *(void **)&cu.symbol = look_up(library, door, #symbol, #name);
    FUNCTIONS(LOOK_UP)
#define CHECK(symbol, name)                     \
    if (cu.symbol == NULL) {                    \
        printf("! %s is not there\n", #symbol); \
        return -1;                              \
    }
    FUNCTIONS(CHECK)
    return 0;
}
