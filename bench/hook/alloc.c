/* What stands between a program and the driver's cuMemAlloc and cuMemFree:  alloc PAIRS BYTES
 *
 * Prints one line for each pair of batches: the mean time of one allocation and its free through whatever the loader put in
 * front of the driver, and of one that goes to the driver's own functions, in ns; as launch.c does for launches. */
#include "front.h"

/* So long that the clock's 25 ns count for 1 ns, so short that a disturbance spoils few. */
#define BATCH 25
#define WARM_UP 20

struct doors {
    __typeof__(&cuMemAlloc_v2) alloc;
    __typeof__(&cuMemFree_v2) free;
};

static double batch(struct doors doors, size_t bytes) {
    uint64_t begin_ns = now_ns();
    for (int i = 0; i < BATCH; i++) {
        CUdeviceptr memory;
        CHECK(doors.alloc(&memory, bytes));
        CHECK(doors.free(memory));
    }
    return (double)(now_ns() - begin_ns) / BATCH;
}

int main(int count, char **words) {
    struct doors doors[2] = {{cuMemAlloc_v2, cuMemFree_v2}};
    *(void **)&doors[1].alloc = in_driver("cuMemAlloc_v2");
    *(void **)&doors[1].free = in_driver("cuMemFree_v2");
    if (count != 3 || !doors[1].alloc || !doors[1].free) {
        fprintf(stderr, "alloc: %s\n", count == 3 ? "no cuMemAlloc in the driver" : "see the head of alloc.c");
        return 2;
    }
    size_t bytes = strtoull(words[2], NULL, 10);
    CUdevice device;
    CUcontext context;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    for (long pair = -WARM_UP; pair < atol(words[1]); pair++) {
        double ns[2];
        for (int i = 0; i < 2; i++) {
            int which = (int)(pair & 1) ^ i;
            ns[which] = batch(doors[which], bytes);
        }
        if (pair >= 0)
            printf("%.1f %.1f\n", ns[0], ns[1]);
    }
    return 0;
}
