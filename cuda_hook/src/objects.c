#include "objects.h"

#include <elf.h>
#include <string.h>

#ifndef STB_GNU_UNIQUE
#define STB_GNU_UNIQUE 10
#endif

/* glibc has made these absolute already; musl and the kernel's vdso have not. */
static const void *address_of(const struct dl_phdr_info *info, ElfW(Addr) value)
{
    return (const void *)(value < info->dlpi_addr ? info->dlpi_addr + value : value);
}

static bool open_object(const struct dl_phdr_info *info, struct es_object *object)
{
    const ElfW(Dyn) *dynamic = NULL;

    *object = (struct es_object){.base = info->dlpi_addr, .low = UINTPTR_MAX};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        const ElfW(Addr) start = info->dlpi_addr + segment->p_vaddr;

        if (segment->p_type == PT_DYNAMIC) {
            dynamic = (const ElfW(Dyn) *)start;
        } else if (segment->p_type == PT_LOAD) {
            object->low = start < object->low ? start : object->low;
            object->high = start + segment->p_memsz > object->high ? start + segment->p_memsz : object->high;
        }
    }
    if (dynamic == NULL)
        return false;
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        const void *address = address_of(info, dynamic->d_un.d_ptr);

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
    if (strcmp(object->strings + symbol->st_name, name) != 0)
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
};

static int visit_by_name(struct dl_phdr_info *info, size_t size, void *data)
{
    const struct by_name *wanted = data;
    const char *path = info->dlpi_name != NULL ? info->dlpi_name : "";
    const char *slash = strrchr(path, '/');
    const char *file = slash != NULL ? slash + 1 : path;

    (void)size;
    return strncmp(file, wanted->prefix, strlen(wanted->prefix)) == 0 && open_object(info, wanted->object);
}

bool es_object_named(const char *prefix, struct es_object *object)
{
    struct by_name wanted = {prefix, object};

    return dl_iterate_phdr(visit_by_name, &wanted) != 0;
}

struct next {
    const char *name;
    bool passed; /* the hook itself */
    void *before, *after;
};

static int visit_next(struct dl_phdr_info *info, size_t size, void *data)
{
    struct next *next = data;
    struct es_object object;

    (void)size;
    if (!open_object(info, &object))
        return 0;
    if (es_object_contains(&object, (const void *)visit_next)) {
        next->passed = true;
        return 0;
    }
    if (next->passed)
        next->after = es_object_symbol(&object, next->name);
    else if (next->before == NULL)
        next->before = es_object_symbol(&object, next->name);
    return next->after != NULL;
}

void *es_next_symbol(const char *name)
{
    struct next next = {.name = name};

    (void)dl_iterate_phdr(visit_next, &next);
    return next.after != NULL ? next.after : next.before;
}
