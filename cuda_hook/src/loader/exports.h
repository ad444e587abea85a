#ifndef EDGESHARE_EXPORTS_H
#define EDGESHARE_EXPORTS_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* What a shared object exports, read where the loader keeps it. */

struct es_object {
    ElfW(Addr) base;      /* what the addresses in the file are relative to */
    ElfW(Addr) low, high; /* where its segments lie */
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *gnu_hash; /* one of the two hash tables is there */
    const uint32_t *sysv_hash;
    const ElfW(Half) * versions; /* NULL when its symbols have none */
};

/* Reads where its tables are; false where it has none. All but where its segments lie is filled in. */
bool es_object_read(ElfW(Addr) base, const ElfW(Dyn) * dynamic, struct es_object *object);

/* The address of a function or datum that the object exports (in its default version); NULL when it has none. */
void *es_object_symbol(const struct es_object *object, const char *name);

bool es_object_contains(const struct es_object *object, const void *address);

#endif
