#include "base/objects.h"

#include <elf.h>
#include <stddef.h>
#include <sys/auxv.h>

#include "base/text.h"

#ifndef STB_GNU_UNIQUE
#define STB_GNU_UNIQUE 10
#endif

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden"))); /* the hook's own; the linker makes it */

/* glibc has made these absolute already; musl and the kernel's vdso have not. */
static const void *address_of(ElfW(Addr) base, ElfW(Addr) value)
{
    return (const void *)(value < base ? base + value : value);
}

/* Fills in all but where the object's segments lie. */
static bool read_dynamic(ElfW(Addr) base, const ElfW(Dyn) *dynamic, struct es_object *object)
{
    *object = (struct es_object){.base = base};
    if (dynamic == NULL)
        return false;
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        const void *address = address_of(base, dynamic->d_un.d_ptr);

        switch (dynamic->d_tag) {
        case DT_SYMTAB:
            object->symbols = address;
            break;
        case DT_STRTAB:
            object->strings = address;
            break;
        case DT_GNU_HASH:
            object->gnu_hash = address;
            break;
        case DT_HASH:
            object->sysv_hash = address;
            break;
        case DT_VERSYM:
            object->versions = address;
            break;
        default:
            break;
        }
    }
    return object->symbols != NULL && object->strings != NULL &&
           (object->gnu_hash != NULL || object->sysv_hash != NULL);
}

static bool open_object(const struct dl_phdr_info *info, struct es_object *object)
{
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
    if (!read_dynamic(info->dlpi_addr, dynamic, object))
        return false;
    object->low = low;
    object->high = high;
    return true;
}

/* Is the symbol at this index one that others may link to, by this name? */
static void *match(const struct es_object *object, uint32_t index, const char *name)
{
    const ElfW(Sym) *symbol = &object->symbols[index];
    const unsigned int type = ELF64_ST_TYPE(symbol->st_info);
    const unsigned int binding = ELF64_ST_BIND(symbol->st_info);

    if (symbol->st_shndx == SHN_UNDEF || symbol->st_value == 0)
        return NULL;
    if (type != STT_FUNC && type != STT_OBJECT && type != STT_NOTYPE)
        return NULL;
    if (binding != STB_GLOBAL && binding != STB_WEAK && binding != STB_GNU_UNIQUE)
        return NULL;
    /* The upper bit marks a version that is there for programs linked long ago. */
    if (object->versions != NULL && (object->versions[index] & 0x8000) != 0)
        return NULL;
    if (!es_text_same(object->strings + symbol->st_name, name))
        return NULL;
    return (void *)(object->base + symbol->st_value);
}

static void *by_gnu_hash(const struct es_object *object, const char *name)
{
    const uint32_t *table = object->gnu_hash;
    const uint32_t buckets = table[0], first = table[1], bloom_words = table[2], bloom_shift = table[3];
    const ElfW(Addr) *bloom = (const ElfW(Addr) *)&table[4];
    const uint32_t *bucket = (const uint32_t *)&bloom[bloom_words];
    const uint32_t *chain = &bucket[buckets];
    const uint32_t bits = sizeof(ElfW(Addr)) * 8;
    uint32_t hash = 5381;
    ElfW(Addr) word;

    for (const char *c = name; *c != '\0'; c++)
        hash = hash * 33 + (unsigned char)*c;
    if (buckets == 0 || bloom_words == 0)
        return NULL;
    word = bloom[hash / bits % bloom_words];
    if ((word >> (hash % bits) & 1) == 0 || (word >> ((hash >> bloom_shift) % bits) & 1) == 0)
        return NULL;
    for (uint32_t index = bucket[hash % buckets]; index >= first; index++) {
        const uint32_t entry = chain[index - first];
        void *address = (entry | 1) == (hash | 1) ? match(object, index, name) : NULL;

        if (address != NULL)
            return address;
        if ((entry & 1) != 0)
            break;
    }
    return NULL;
}

static void *by_sysv_hash(const struct es_object *object, const char *name)
{
    const uint32_t *table = object->sysv_hash;
    const uint32_t buckets = table[0];
    const uint32_t *chain = &table[2 + buckets];
    uint32_t hash = 0;

    for (const char *c = name; *c != '\0'; c++) {
        hash = (hash << 4) + (unsigned char)*c;
        hash = (hash ^ (hash >> 24 & 0xF0)) & 0x0FFFFFFF;
    }
    if (buckets == 0)
        return NULL;
    for (uint32_t index = table[2 + hash % buckets]; index != 0; index = chain[index]) {
        void *address = match(object, index, name);

        if (address != NULL)
            return address;
    }
    return NULL;
}

void *es_object_symbol(const struct es_object *object, const char *name)
{
    return object->gnu_hash != NULL ? by_gnu_hash(object, name) : by_sysv_hash(object, name);
}

bool es_object_contains(const struct es_object *object, const void *address)
{
    return (uintptr_t)address >= object->low && (uintptr_t)address < object->high;
}

struct by_name {
    const char *prefix;
    struct es_object *object;
    const char *path;
};

static int visit_by_name(struct dl_phdr_info *info, size_t size, void *data)
{
    struct by_name *wanted = data;
    const char *path = info->dlpi_name != NULL ? info->dlpi_name : "";
    const char *file = path;

    (void)size;
    wanted->path = path;
    for (; *path != '\0'; path++)
        file = *path == '/' ? path + 1 : file;
    return es_text_begins(file, wanted->prefix) && open_object(info, wanted->object);
}

bool es_object_named(const char *prefix, struct es_object *object)
{
    struct by_name wanted = {prefix, object, NULL};

    return dl_iterate_phdr(visit_by_name, &wanted) != 0;
}

/* dlfcn.h's, which is not included here for its dlsym. They are the same in glibc and musl. */
enum { LAZY = 1, NO_LOAD = 4, NO_DELETE = 0x1000 };

void es_object_keep(const char *prefix)
{
    struct es_object object;
    struct by_name wanted = {prefix, &object, NULL};
    void *(*open)(const char *, int) = (void *(*)(const char *, int))es_global_symbol("dlopen");

    if (open != NULL && dl_iterate_phdr(visit_by_name, &wanted) != 0)
        (void)open(wanted.path, LAZY | NO_LOAD | NO_DELETE);
}

enum { BEFORE = 1, BEHIND };

static int visit_before_hook(struct dl_phdr_info *info, size_t size, void *data)
{
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

bool es_object_before_hook(const void *address)
{
    return dl_iterate_phdr(visit_before_hook, (void *)address) == BEFORE;
}

/* Where a program was loaded, by its program headers, which follow its first bytes. */
static ElfW(Addr) base_of(const ElfW(Phdr) *segments, unsigned long count)
{
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
static const struct link_map *loaded(void)
{
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
static bool look_in(struct search *search, ElfW(Addr) base, const ElfW(Dyn) *dynamic)
{
    struct es_object object;
    void *found;

    if (dynamic == _DYNAMIC) {
        search->passed = true;
        return false;
    }
    found = read_dynamic(base, dynamic, &object) ? es_object_symbol(&object, search->name) : NULL;
    if (search->passed)
        search->found = found;
    else if (search->before == NULL)
        search->before = found;
    return search->found != NULL;
}

static int visit_search(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            return look_in(data, info->dlpi_addr, (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr));
    }
    return 0;
}

static void *find(const char *name, bool behind)
{
    struct search search = {.name = name, .passed = !behind};
    const struct link_map *map = loaded();

    if (map == NULL)
        (void)dl_iterate_phdr(visit_search, &search);
    for (bool found = false; map != NULL && !found; map = map->l_next)
        found = look_in(&search, map->l_addr, map->l_ld);
    return search.found != NULL ? search.found : search.before;
}

void *es_global_symbol(const char *name)
{
    return find(name, false);
}

void *es_next_symbol(const char *name)
{
    return find(name, true);
}
