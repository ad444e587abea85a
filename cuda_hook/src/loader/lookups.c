#include "loader/lookups.h"

#include <elf.h>
#include <stddef.h>
#include <sys/auxv.h>

#include "loader/exports.h"

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden"))); /* the hook's own; the linker makes it */

/* Where a program was loaded, by its program headers, which follow its first bytes. */
static ElfW(Addr) base_of(const ElfW(Phdr) * segments, unsigned long count) {
    for (unsigned long i = 0; i < count; i++) {
        if (segments[i].p_type == PT_PHDR)
            return (ElfW(Addr))segments - segments[i].p_vaddr;
        if (segments[i].p_type == PT_LOAD && segments[i].p_offset == 0)
            return (ElfW(Addr))segments - sizeof(ElfW(Ehdr)) - segments[i].p_vaddr;
    }
    return 0;
}

/* The loader's list of objects, in the order in which names are looked up. It is found where debuggers find it. Not by
 * dl_iterate_phdr, which a sanitizer stands in front of: it may be the one who asks, and not be ready. The objects that
 * matter here are there from the start of the program and stay, so that nothing need be locked. NULL where the program
 * was started by calling its loader: then the headers are the loader's own. */
static const struct link_map *loaded(void) {
    const ElfW(Phdr) *segments = (const ElfW(Phdr) *)getauxval(AT_PHDR);
    const unsigned long count = segments != NULL ? getauxval(AT_PHNUM) : 0;
    const ElfW(Addr) base = base_of(segments, count);
    const ElfW(Dyn) *dynamic = NULL;

    for (unsigned long i = 0; i < count; i++) {
        if (segments[i].p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn) *)(base + segments[i].p_vaddr);
    }
    for (; dynamic != NULL && dynamic->d_tag != DT_NULL; dynamic++) {
        if (dynamic->d_tag == DT_DEBUG && dynamic->d_un.d_ptr != 0)
            return ((const struct r_debug *)dynamic->d_un.d_ptr)->r_map;
    }
    return NULL;
}

/* For a name, through all objects but the hook: those after it first, when it has to be passed. */
struct search {
    const char *name;
    bool passed;
    void *before; /* found in an object that stands before the hook */
    void *found;
};

/* True when it is found. */
static bool look_in(struct search *search, ElfW(Addr) base, const ElfW(Dyn) * dynamic) {
    struct es_object object;
    void *found;

    if (dynamic == _DYNAMIC) {
        search->passed = true;
        return false;
    }
    found = es_object_read(base, dynamic, &object) ? es_object_symbol(&object, search->name) : NULL;
    if (search->passed)
        search->found = found;
    else if (search->before == NULL)
        search->before = found;
    return search->found != NULL;
}

static int visit_search(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            return look_in(data, info->dlpi_addr, (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr));
    }
    return 0;
}

static void *find(const char *name, bool behind) {
    struct search search = {.name = name, .passed = !behind};
    const struct link_map *map = loaded();

    if (map == NULL)
        (void)dl_iterate_phdr(visit_search, &search);
    for (bool found = false; map != NULL && !found; map = map->l_next)
        found = look_in(&search, map->l_addr, map->l_ld);
    return search.found != NULL ? search.found : search.before;
}

void *es_global_symbol(const char *name) { return find(name, false); }

void *es_next_symbol(const char *name) { return find(name, true); }
