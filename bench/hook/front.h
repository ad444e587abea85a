/* For programs that time what stands in front of the driver: the driver past it, a clock, and a check. */
#ifndef BENCH_FRONT_H
#define BENCH_FRONT_H

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver_api.h"

#define CHECK(call)                                                                                \
    do {                                                                                           \
        CUresult result = (call);                                                                  \
        if (result != CUDA_SUCCESS) {                                                              \
            fprintf(stderr, "%s:%d: %s: CUDA error %d\n", __FILE__, __LINE__, #call, (int)result); \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static inline uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The driver's own function, whoever stands in front of it: looked up in the library's symbols. */
static inline void *in_driver(const char *name) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    struct link_map *map;
    const ElfW(Sym) *symbols = NULL;
    const char *names = NULL;
    if (!library || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0)
        return NULL;
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_SYMTAB)
            symbols = (const ElfW(Sym) *)entry->d_un.d_ptr;
        else if (entry->d_tag == DT_STRTAB)
            names = (const char *)entry->d_un.d_ptr;
    }
    /* Linkers put the names right behind the symbols. */
    for (const ElfW(Sym) *symbol = symbols; symbol && (const char *)symbol < names; symbol++) {
        if (symbol->st_shndx != SHN_UNDEF && strcmp(names + symbol->st_name, name) == 0)
            return (char *)map->l_addr + symbol->st_value;
    }
    return NULL;
}

#endif
