/* What stands between a program and the driver's cuLaunchKernel:  launch PAIRS FUNCTIONS
 *
 * Prints one line for each pair: the mean time of a launch in a batch through whatever the loader put in front of the
 * driver, and in a batch that goes to the driver's own function, in ns. Both are in one process, on one core, a fraction
 * of a millisecond apart, and called through a pointer alike; which goes first changes with each pair. So many functions
 * are launched in turn. With `launch PAIRS FUNCTIONS none` both batches are the same: the error of the method.
 *
 *   launch count BATCHES FUNCTIONS front|driver   launches and prints nothing, for who counts what counted_launches executes */
#include <stdbool.h>

#include "front.h"

/* Fits into an empty queue (1,024), so that no launch waits; so long that the clock's 25 ns count for 0.05 ns. */
#define BATCH 512
#define WARM_UP 50
#define FUNCTIONS 1024 /* most */

/* Takes no time to speak of on the device: what is timed is the call. */
#define HEAD ".version 6.0\n.target sm_50\n.address_size 64\n"
#define ENTRY ".visible .entry brief%d() { // simgpu: duration_ns = 100\n ret; }\n"

typedef __typeof__(&cuLaunchKernel) launch_function;

static CUfunction functions[FUNCTIONS];
static int function_count, next;

static void set_up(void) {
    static char text[sizeof(HEAD) + FUNCTIONS * (sizeof(ENTRY) + 16)] = HEAD;
    char *end = text + strlen(text);
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    for (int i = 0; i < function_count; i++)
        end += sprintf(end, ENTRY, i);
    CHECK(cuModuleLoadData(&module, text));
    for (int i = 0; i < function_count; i++) {
        char name[16];
        sprintf(name, "brief%d", i);
        CHECK(cuModuleGetFunction(&functions[i], module, name));
    }
}

static inline void launches(launch_function launch) {
    for (int i = 0; i < BATCH; i++) {
        CHECK(launch(functions[next], 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
        next = next + 1 < function_count ? next + 1 : 0;
    }
}

static double batch(launch_function launch) {
    uint64_t begin_ns = now_ns();
    launches(launch);
    uint64_t end_ns = now_ns();
    CHECK(cuCtxSynchronize());
    return (double)(end_ns - begin_ns) / BATCH;
}

/* By this name callgrind knows what to count. */
__attribute__((noinline)) void counted_launches(launch_function launch) { launches(launch); }

static int count_launches(launch_function launch, long batches) {
    for (long i = -WARM_UP; i < batches; i++) {
        if (i < 0)
            launches(launch);
        else
            counted_launches(launch);
        CHECK(cuCtxSynchronize());
    }
    return 0;
}

int main(int count, char **words) {
    launch_function front = cuLaunchKernel, driver;
    *(void **)&driver = in_driver("cuLaunchKernel");
    const bool counted = count > 1 && strcmp(words[1], "count") == 0;
    if (count > 2)
        function_count = atoi(words[counted && count > 3 ? 3 : 2]);
    if (!driver || function_count < 1 || function_count > FUNCTIONS) {
        fprintf(stderr, "launch: %s\n", driver ? "see the head of launch.c" : "no cuLaunchKernel in the driver");
        return 2;
    }
    set_up();
    if (counted)
        return count == 5 ? count_launches(strcmp(words[4], "front") == 0 ? front : driver, atol(words[2])) : 2;
    launch_function first = count > 3 ? driver : front;
    for (long pair = -WARM_UP; pair < atol(words[1]); pair++) {
        double ns[2];
        for (int i = 0; i < 2; i++) {
            int which = (int)(pair & 1) ^ i;
            ns[which] = batch(which ? driver : first);
        }
        if (pair >= 0)
            printf("%.2f %.2f\n", ns[0], ns[1]);
    }
    return 0;
}
