#ifndef EDGESHARE_OBJECTS_H
#define EDGESHARE_OBJECTS_H

#include <link.h>
#include <stdbool.h>

/* The shared objects of this process, read where the loader keeps them. dlsym cannot be asked: it is one of the
 * functions that the hook stands in front of, and before glibc 2.34 it lives in a library that may not be there. */

struct es_object {
    ElfW(Addr) base; /* what the addresses in the file are relative to */
    ElfW(Addr) low, high; /* where its segments lie */
    const ElfW(Sym) *symbols;
    const char *strings;
    const uint32_t *gnu_hash; /* one of the two hash tables is there */
    const uint32_t *sysv_hash;
    const ElfW(Half) *versions; /* NULL when its symbols have none */
};

/* The first object whose file name begins so; false when there is none. */
bool es_object_named(const char *prefix, struct es_object *object);

/* Keeps that object loaded, however often the program closes it; does nothing where there is none. */
void es_object_keep(const char *prefix);

/* The address of a function or datum that the object exports (in its default version); NULL when it has none. */
void *es_object_symbol(const struct es_object *object, const char *name);

bool es_object_contains(const struct es_object *object, const void *address);

/* Is the address within an object that stands before the hook in the order of look-up: the program, or a library that was
 * preloaded before it? */
bool es_object_before_hook(const void *address);

/* What the program reaches by this name, the hook's own left out: the first object that exports it. NULL when there is
 * none. */
void *es_global_symbol(const char *name);

/* What stands behind the hook by this name: the first object after it; if none does, one before it. */
void *es_next_symbol(const char *name);

#endif
