#include "loader/exports.h"

#include <elf.h>
#include <stddef.h>

#include "base/text.h"

#ifndef STB_GNU_UNIQUE
#define STB_GNU_UNIQUE 10
#endif

/* glibc has made these absolute already; musl and the kernel's vdso have not. */
static const void *address_of(ElfW(Addr) base, ElfW(Addr) value) { return (const void *)(value < base ? base + value : value); }

bool es_object_read(ElfW(Addr) base, const ElfW(Dyn) * dynamic, struct es_object *object) {
    *object = (struct es_object){.base = base};
    if (dynamic == NULL)
        return false;
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        const void *address = address_of(base, dynamic->d_un.d_ptr);

        switch (dynamic->d_tag) {
        case DT_SYMTAB: object->symbols = address; break;
        case DT_STRTAB: object->strings = address; break;
        case DT_GNU_HASH: object->gnu_hash = address; break;
        case DT_HASH: object->sysv_hash = address; break;
        case DT_VERSYM: object->versions = address; break;
        default: break;
        }
    }
    return object->symbols != NULL && object->strings != NULL && (object->gnu_hash != NULL || object->sysv_hash != NULL);
}

/* Is the symbol at this index one that others may link to, by this name? */
static void *match(const struct es_object *object, uint32_t index, const char *name) {
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

static void *by_gnu_hash(const struct es_object *object, const char *name) {
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

static void *by_sysv_hash(const struct es_object *object, const char *name) {
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

void *es_object_symbol(const struct es_object *object, const char *name) {
    return object->gnu_hash != NULL ? by_gnu_hash(object, name) : by_sysv_hash(object, name);
}

bool es_object_contains(const struct es_object *object, const void *address) {
    return (uintptr_t)address >= object->low && (uintptr_t)address < object->high;
}
