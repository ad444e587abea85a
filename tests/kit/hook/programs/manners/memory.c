#include <stdlib.h>

#include "../hook_code.h"
#include "manners.h"

static unsigned long from_hook;

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *place, size_t bytes);
extern void __libc_free(void *place);

static void note(const void *caller) { from_hook += (uintptr_t)caller >= hook_begin && (uintptr_t)caller < hook_end; }

void *malloc(size_t bytes) {
    note(__builtin_return_address(0));
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
    note(__builtin_return_address(0));
    return __libc_calloc(count, bytes);
}

void *realloc(void *place, size_t bytes) {
    note(__builtin_return_address(0));
    return __libc_realloc(place, bytes);
}

void free(void *place) {
    note(__builtin_return_address(0));
    __libc_free(place);
}

/* A program's own malloc may itself take device memory: the hook must not call it while it has locks. */
void own_malloc(void) {
    CUdeviceptr blocks[200];

    (void)dl_iterate_phdr(find_hook, NULL);
    start();
    for (int i = 0; i < 200; i++)
        GOOD(cuMemAlloc_v2(&blocks[i], 4096));
    work();
    for (int i = 0; i < 200; i++)
        GOOD(cuMemFree_v2(blocks[i]));
    MUST((hook_end != 0) == (getenv("LD_PRELOAD")[0] != '\0'));
    MUST(from_hook == 0);
}
