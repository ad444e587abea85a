/* The words of PTX text. */
#ifndef SIMGPU_TOKENS_H
#define SIMGPU_TOKENS_H

#include <stdbool.h>
#include <stdint.h>

const char *skip_space(const char *at);

/* The next word or single character, over comments, and in `end` the place after it; NULL at the end of the text. */
const char *next_token(const char *at, const char **end);

bool is_token(const char *token, const char *end, const char *text);

/* Bytes of ".u32", ".f64", ".b8" and so on; 0: no type. */
uint32_t token_type_bytes(const char *token, const char *end);

#endif
