/* A program that asks NVML for a device's memory, forks, and has its child do what argv[1] says; it says what either was told, in
 * MiB. The child tells when it is done, and both wait for the end of their stdin. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../must.h"
#include "nvml/nvml_api.h"

static unsigned long long nvml_mib(void) {
    nvmlMemory_t memory;
    nvmlDevice_t device;

    MUST((CUresult)nvmlInit_v2());
    MUST((CUresult)nvmlDeviceGetHandleByIndex_v2(0, &device));
    MUST((CUresult)nvmlDeviceGetMemoryInfo(device, &memory));
    return memory.total >> 20;
}

static unsigned long long cuda_mib(void) {
    size_t bytes;

    MUST(cuInit(0));
    MUST(cuDeviceTotalMem_v2(&bytes, 0));
    return bytes >> 20;
}

static unsigned long long in_child(const char *what) {
    if (strcmp(what, "init") == 0)
        return (unsigned long long)cuInit(0);
    return strcmp(what, "nvml") == 0 ? nvml_mib() : cuda_mib();
}

int main(int argc, char **argv) {
    char line[8];
    pid_t child;
    int status;

    if (argc != 2)
        return 2;
    printf("parent: %llu\n", nvml_mib());
    (void)fflush(stdout);
    child = fork();
    if (child == 0) {
        printf("child %d: %llu\n", (int)getpid(), in_child(argv[1]));
        (void)fflush(stdout);
        (void)read(STDIN_FILENO, line, 1);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 3;
    printf("parent: %llu\n", nvml_mib());
    return status;
}
