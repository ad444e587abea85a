#include "driver/module/tokens.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const char *skip_space(const char *at) {
    while (isspace((unsigned char)*at))
        at++;
    return at;
}

static bool word_character(char c) { return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.' || c == '%'; }

const char *next_token(const char *at, const char **end) {
    for (;;) {
        at = skip_space(at);
        if (at[0] == '/' && at[1] == '/') {
            at += strcspn(at, "\n");
        } else if (at[0] == '/' && at[1] == '*') {
            const char *close = strstr(at + 2, "*/");
            at = close ? close + 2 : at + strlen(at);
        } else {
            break;
        }
    }
    if (!*at)
        return NULL;
    *end = at + 1;
    if (word_character(*at)) {
        while (word_character(**end))
            (*end)++;
    }
    return at;
}

bool is_token(const char *token, const char *end, const char *text) {
    return strlen(text) == (size_t)(end - token) && strncmp(token, text, (size_t)(end - token)) == 0;
}

uint32_t token_type_bytes(const char *token, const char *end) {
    if (end - token < 3 || token[0] != '.' || !strchr("busf", token[1]))
        return 0;
    int bits = atoi(token + 2);
    return bits == 8 || bits == 16 || bits == 32 || bits == 64 ? (uint32_t)bits / 8 : 0;
}
