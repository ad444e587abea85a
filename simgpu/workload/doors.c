#include "workload/doors.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* The versions whose functions are asked for: cuGetProcAddress itself is as old as the first, graphs as the second. */
#define CUDA_VERSION 11030
#define CUDA_VERSION_GRAPHS 11040

/* An older driver has not all of these; linked weakly, burn starts on it too. */
#define DOOR(member, symbol, name) extern __typeof__(symbol) symbol __attribute__((weak));
GRAPH_DOORS(DOOR)
#undef DOOR

static void linked(struct doors *doors, bool graphs) {
#define DOOR(member, symbol, name) doors->member = symbol;
    DOORS(DOOR)
    if (graphs) {
        GRAPH_DOORS(DOOR)
    }
#undef DOOR
}

static void opened(struct doors *doors, void *library, bool graphs) {
#define DOOR(member, symbol, name) *(void **)&doors->member = dlsym(library, #symbol);
    DOORS(DOOR)
    if (graphs) {
        GRAPH_DOORS(DOOR)
    }
#undef DOOR
}

static void asked(struct doors *doors, void *library, bool graphs) {
    __typeof__(&cuGetProcAddress) get_proc_address;
    int version = CUDA_VERSION;
    *(void **)&get_proc_address = dlsym(library, "cuGetProcAddress");
    if (!get_proc_address)
        return;
#define DOOR(member, symbol, name)                                                                              \
    if (get_proc_address(#name, (void **)&doors->member, version, CU_GET_PROC_ADDRESS_DEFAULT) != CUDA_SUCCESS) \
        doors->member = NULL;
    DOORS(DOOR)
    version = CUDA_VERSION_GRAPHS;
    if (graphs) {
        GRAPH_DOORS(DOOR)
    }
#undef DOOR
}

static void look(struct doors *doors, const char *door, bool graphs) {
    if (strcmp(door, "linked") == 0) {
        linked(doors, graphs);
        return;
    }
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return;
    if (strcmp(door, "dlopen") == 0)
        opened(doors, library, graphs);
    else
        asked(doors, library, graphs);
}

int find_doors(struct doors *doors, const char *door, bool graphs) {
    bool missing = false;
    memset(doors, 0, sizeof *doors);
    if (strcmp(door, "linked") != 0 && strcmp(door, "dlopen") != 0 && strcmp(door, "getproc") != 0) {
        fprintf(stderr, "burn: --door %s is not known: linked, dlopen or getproc\n", door);
        return -1;
    }
    look(doors, door, graphs);
#define DOOR(member, symbol, name) missing |= !doors->member;
    DOORS(DOOR)
    if (graphs) {
        GRAPH_DOORS(DOOR)
    }
#undef DOOR
    if (missing) {
        const char *reason = dlerror();
        fprintf(stderr, "burn: no driver through the door %s: %s\n", door, reason ? reason : "a function is not there");
    }
    return missing ? -1 : 0;
}
