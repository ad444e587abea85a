/* A library of somebody else's, preloaded too: it stands in front of launches and look-ups, and passes them on to whoever
 * is next. At the end it writes down how many launches it saw. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "driver_api.h"

static int launches;

typedef void *(*dlsym_function)(void *handle, const char *name);

/* As such libraries find the next dlsym: by the version that the C library gave it long ago. */
static dlsym_function next_dlsym(void) {
    static dlsym_function next;

    if (next == NULL)
        next = (dlsym_function)dlvsym(RTLD_NEXT, "dlsym", VERSION);
    return next;
}

void *dlsym(void *handle, const char *name) { return next_dlsym()(handle, name); }

CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ, unsigned int blockDimX,
                        unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                        void **kernelParams, void **extra) {
    static __typeof__(&cuLaunchKernel) next;

    if (next == NULL)
        next = (__typeof__(next))next_dlsym()(RTLD_NEXT, "cuLaunchKernel");
    launches++;
    return next(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, hStream, kernelParams, extra);
}

static void __attribute__((destructor)) say(void) {
    const char *path = getenv("INTERPOSED");
    FILE *file = path != NULL ? fopen(path, "w") : NULL;

    if (file == NULL)
        return;
    fprintf(file, "%d\n", launches);
    (void)fclose(file);
}
