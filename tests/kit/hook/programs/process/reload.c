/* A program with a plugin that is linked to a library (argv: the plugin, how the library's file name begins). It opens the plugin,
 * has it begin, closes it, and with it the library; then it opens it again and has it go on. */
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct place {
    const char *file;
    uintptr_t low, high; /* 0: it is not loaded */
};

static int find(struct dl_phdr_info *info, size_t size, void *data) {
    const char *slash = strrchr(info->dlpi_name, '/');
    struct place *place = data;

    (void)size;
    if (strncmp(slash != NULL ? slash + 1 : info->dlpi_name, place->file, strlen(place->file)) != 0)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

        if (info->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        if (place->low == 0)
            place->low = start & ~(uintptr_t)4095;
        place->high = (start + info->dlpi_phdr[i].p_memsz + 4095) & ~(uintptr_t)4095;
    }
    return 1;
}

static struct place place_of(const char *file) {
    struct place place = {.file = file};

    dl_iterate_phdr(find, &place);
    return place;
}

static void *must(void *pointer) {
    if (pointer == NULL) {
        printf("%s\n", dlerror());
        exit(1);
    }
    return pointer;
}

static void run(void *plugin, const char *name) { ((void (*)(void))must(dlsym(plugin, name)))(); }

int main(int argc, char **argv) {
    struct place before;
    void *plugin;

    if (argc != 3)
        return 2;
    plugin = must(dlopen(argv[1], RTLD_NOW));
    run(plugin, "begin");
    before = place_of(argv[2]);
    must((void *)before.low);
    (void)dlclose(plugin);
    /* Where it was there is nothing to be called any more, and it cannot come back to that place. */
    if (place_of(argv[2]).low == 0)
        (void)mmap((void *)before.low, before.high - before.low, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
                   0);
    plugin = must(dlopen(argv[1], RTLD_NOW));
    run(plugin, "go_on");
    return 0;
}
