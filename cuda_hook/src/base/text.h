#ifndef EDGESHARE_TEXT_H
#define EDGESHARE_TEXT_H

#include <stdbool.h>

/* Strings without the C library. Who looks a function up may be somebody who stands in front of the C library himself and
 * is not ready yet (a sanitizer looks up the functions that it wraps): strcmp would lead back to him. The empty asm keeps
 * the compiler from making a call of the loop. */

static inline bool es_text_same(const char *a, const char *b) {
    for (; *a == *b; a++, b++) {
        __asm__ volatile("");
        if (*a == '\0')
            return true;
    }
    return false;
}

static inline bool es_text_begins(const char *text, const char *prefix) {
    for (; *prefix != '\0'; text++, prefix++) {
        __asm__ volatile("");
        if (*text != *prefix)
            return false;
    }
    return true;
}

#endif
