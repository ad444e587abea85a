#include "workload/doors.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* The version whose functions are asked for: cuGetProcAddress itself is that old. */
#define CUDA_VERSION 11030

static int linked(struct doors *doors) {
#define DOOR(member, symbol, name) doors->member = symbol;
    DOORS(DOOR)
#undef DOOR
    return 0;
}

static int opened(struct doors *doors, void *library) {
#define DOOR(member, symbol, name) *(void **)&doors->member = dlsym(library, #symbol);
    DOORS(DOOR)
#undef DOOR
    return 0;
}

static int asked(struct doors *doors, void *library) {
    __typeof__(&cuGetProcAddress) get_proc_address;
    *(void **)&get_proc_address = dlsym(library, "cuGetProcAddress");
    if (!get_proc_address)
        return -1;
    int failed = 0;
#define DOOR(member, symbol, name)                                                                                    \
    failed |= get_proc_address(#name, (void **)&doors->member, CUDA_VERSION, CU_GET_PROC_ADDRESS_DEFAULT) != CUDA_SUCCESS;
    DOORS(DOOR)
#undef DOOR
    return failed ? -1 : 0;
}

static int look(struct doors *doors, const char *door) {
    if (strcmp(door, "linked") == 0)
        return linked(doors);
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return -1;
    return strcmp(door, "dlopen") == 0 ? opened(doors, library) : asked(doors, library);
}

int find_doors(struct doors *doors, const char *door) {
    memset(doors, 0, sizeof *doors);
    if (strcmp(door, "linked") != 0 && strcmp(door, "dlopen") != 0 && strcmp(door, "getproc") != 0) {
        fprintf(stderr, "burn: --door %s is not known: linked, dlopen or getproc\n", door);
        return -1;
    }
    int found = look(doors, door);
#define DOOR(member, symbol, name) \
    if (!doors->member)            \
        found = -1;
    DOORS(DOOR)
#undef DOOR
    if (found != 0) {
        const char *reason = dlerror();
        fprintf(stderr, "burn: no driver through the door %s: %s\n", door, reason ? reason : "a function is not there");
    }
    return found;
}
