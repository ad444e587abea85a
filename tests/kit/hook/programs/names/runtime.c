/* Loads a CUDA runtime and lets it find the driver; then says which functions of driver and hook the runtime holds. argv:
 * the runtime's file. Answers: "version RESULT NUMBER", "devices RESULT NUMBER", and for each function that some word of
 * the runtime's data points at, "holds OBJECT SYMBOL" (OBJECT: driver or hook). */
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const char *runtime_file;

static void look(const void *const *words, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const char *object;
        Dl_info info;

        if (words[i] == NULL || dladdr(words[i], &info) == 0 || info.dli_saddr != words[i])
            continue;
        if (strstr(info.dli_fname, "libedgeshare_cuda") != NULL)
            object = "hook";
        else if (strstr(info.dli_fname, "libcuda.so") != NULL)
            object = "driver";
        else
            continue;
        printf("holds %s %s\n", object, info.dli_sname);
    }
}

static int visit(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    (void)data;
    if (info->dlpi_name == NULL || strcmp(info->dlpi_name, runtime_file) != 0)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_W) != 0)
            look((const void *const *)(info->dlpi_addr + (segment->p_vaddr + 7) / 8 * 8), segment->p_memsz / 8 - 1);
    }
    return 1;
}

int main(int argc, char **argv) {
    int (*get_version)(int *);
    int (*get_count)(int *);
    int number = -1, result;
    void *runtime;

    if (argc != 2)
        return 2;
    runtime_file = argv[1];
    /* Held, because a runtime that finds no device closes it. */
    if (dlopen("libcuda.so.1", RTLD_NOW) == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 3;
    }
    runtime = dlopen(runtime_file, RTLD_NOW);
    if (runtime == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 3;
    }
    *(void **)&get_version = dlsym(runtime, "cudaRuntimeGetVersion");
    *(void **)&get_count = dlsym(runtime, "cudaGetDeviceCount");
    if (get_version == NULL || get_count == NULL)
        return 4;
    result = get_version(&number);
    printf("version %d %d\n", result, number);
    number = -1;
    result = get_count(&number);
    printf("devices %d %d\n", result, number);
    return dl_iterate_phdr(visit, NULL) == 1 ? 0 : 5;
}
