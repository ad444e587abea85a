/* Calls functions of a driver library with nothing but zeros. argv: the library; "context" to make one first, else
 * "nothing". One name a line on stdin; answers "NAME RESULT", or "NAME crash" for what the driver does not survive. */
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "driver_api.h"

/* More arguments than any function has; what is not looked at is not there. */
typedef CUresult (*anything)(void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *);

static sigjmp_buf before;

static void back(int signal) {
    (void)signal;
    siglongjmp(before, 1);
}

static int make_context(void *driver) {
    CUcontext context;

    return ((__typeof__(&cuInit))dlsym(driver, "cuInit"))(0) == CUDA_SUCCESS &&
           ((__typeof__(&cuDevicePrimaryCtxRetain))dlsym(driver, "cuDevicePrimaryCtxRetain"))(&context, 0) == CUDA_SUCCESS &&
           ((__typeof__(&cuCtxSetCurrent))dlsym(driver, "cuCtxSetCurrent"))(context) == CUDA_SUCCESS;
}

int main(int argc, char **argv) {
    const struct sigaction action = {.sa_handler = back};
    char name[128];
    void *driver;

    if (argc != 3)
        return 2;
    driver = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
    if (driver == NULL)
        return 3;
    if (strcmp(argv[2], "context") == 0 && !make_context(driver))
        return 4;
    (void)sigaction(SIGSEGV, &action, NULL);
    while (fgets(name, sizeof(name), stdin) != NULL) {
        anything call;

        name[strcspn(name, "\n")] = '\0';
        *(void **)&call = dlsym(driver, name);
        if (call == NULL)
            printf("%s absent\n", name);
        else if (sigsetjmp(before, 1) == 0)
            printf("%s %d\n", name, (int)call(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
        else
            printf("%s crash\n", name);
        fflush(stdout);
    }
    return 0;
}
