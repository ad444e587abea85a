#include "loader/objects.h"

#include <elf.h>
#include <stddef.h>

#include "base/text.h"
#include "loader/lookups.h"

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden"))); /* the hook's own; the linker makes it */

static bool open_object(const struct dl_phdr_info *info, struct es_object *object) {
    const ElfW(Dyn) *dynamic = NULL;
    ElfW(Addr) low = UINTPTR_MAX, high = 0;

    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        const ElfW(Addr) start = info->dlpi_addr + segment->p_vaddr;

        if (segment->p_type == PT_DYNAMIC) {
            dynamic = (const ElfW(Dyn) *)start;
        } else if (segment->p_type == PT_LOAD) {
            low = start < low ? start : low;
            high = start + segment->p_memsz > high ? start + segment->p_memsz : high;
        }
    }
    if (!es_object_read(info->dlpi_addr, dynamic, object))
        return false;
    object->low = low;
    object->high = high;
    return true;
}

struct by_name {
    const char *prefix;
    struct es_object *object;
    const char *path;
};

static int visit_by_name(struct dl_phdr_info *info, size_t size, void *data) {
    struct by_name *wanted = data;
    const char *path = info->dlpi_name != NULL ? info->dlpi_name : "";
    const char *file = path;

    (void)size;
    wanted->path = path;
    for (; *path != '\0'; path++)
        file = *path == '/' ? path + 1 : file;
    return es_text_begins(file, wanted->prefix) && open_object(info, wanted->object);
}

bool es_object_named(const char *prefix, struct es_object *object) {
    struct by_name wanted = {prefix, object, NULL};

    return dl_iterate_phdr(visit_by_name, &wanted) != 0;
}

/* dlfcn.h's, which is not included here for its dlsym. They are the same in glibc and musl. */
enum { LAZY = 1, NO_LOAD = 4, NO_DELETE = 0x1000 };

bool es_object_keep(const char *prefix) {
    struct es_object object;
    struct by_name wanted = {prefix, &object, NULL};
    void *(*open)(const char *, int) = (void *(*)(const char *, int))es_global_symbol("dlopen");

    return open != NULL && dl_iterate_phdr(visit_by_name, &wanted) != 0 && open(wanted.path, LAZY | NO_LOAD | NO_DELETE) != NULL;
}

/* The loader says it with each object: the first will do. musl unloads nothing, and says 0. */
static int visit_count(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    *(uint64_t *)data = info->dlpi_subs;
    return 1;
}

uint64_t es_objects_unloaded(void) {
    uint64_t count = 0;

    (void)dl_iterate_phdr(visit_count, &count);
    return count;
}

enum { BEFORE = 1, BEHIND };

static int visit_before_hook(struct dl_phdr_info *info, size_t size, void *data) {
    const uintptr_t address = (uintptr_t)data;

    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        const ElfW(Addr) start = info->dlpi_addr + segment->p_vaddr;

        if (segment->p_type == PT_DYNAMIC && start == (ElfW(Addr))_DYNAMIC)
            return BEHIND;
        if (segment->p_type == PT_LOAD && address >= start && address < start + segment->p_memsz)
            return BEFORE;
    }
    return 0;
}

bool es_object_before_hook(const void *address) { return dl_iterate_phdr(visit_before_hook, (void *)address) == BEFORE; }
