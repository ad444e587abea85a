#include <dlfcn.h>
#include <errno.h>

#include "manners.h"

/* Each call leaves errno as the driver does, which is as it was. */
void keep_errno(void) {
    CUdeviceptr block;
    CUevent event;
    size_t bytes;

#define KEPT(call)                                        \
    do {                                                  \
        errno = ENOTTY;                                   \
        GOOD(call);                                       \
        if (errno != ENOTTY)                              \
            printf("%s leaves errno %d\n", #call, errno); \
    } while (0)
    start();
    KEPT(launch(100));
    KEPT(launch(100));
    for (int i = 0; i < 30; i++)
        KEPT(launch(500));
    KEPT(cuMemAlloc_v2(&block, 1 << 20));
    KEPT(cuMemsetD8_v2(block, 0, 1));
    KEPT(cuMemGetInfo_v2(&bytes, &bytes));
    KEPT(cuMemFree_v2(block));
    KEPT(cuEventCreate(&event, 0));
    KEPT(cuEventRecord(event, NULL));
    KEPT(cuEventSynchronize(event));
    KEPT(cuStreamSynchronize(NULL));
    KEPT(cuStreamQuery(NULL));
    KEPT(cuCtxSynchronize());
    KEPT(cuDevicePrimaryCtxRetain(&context, 0));
    errno = ENOTTY;
    (void)dlsym(RTLD_DEFAULT, "cuLaunchKernel");
    MUST(errno == ENOTTY);
}
