#include "driver/module/ptx.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "driver/module/tokens.h"

#define HOUR_NS 3600000000000ull
/* Where the image does not say: so much for each wave of blocks (8 blocks a multiprocessor at a time), which is a small
 * kernel of 5 µs for one block. */
#define DEFAULT_WAVE_NS 5000u
#define DEFAULT_BLOCKS_AT_A_TIME 8u

/* ---- durations ---- */

static bool read_factor(const char **at, struct ptx_term *term) {
    const char *from = skip_space(*at);
    char *end;
    if (isdigit((unsigned char)*from)) {
        unsigned long long number = strtoull(from, &end, 10);
        if (number > HOUR_NS || (number && term->number > HOUR_NS / number))
            return false;
        term->number *= number;
        *at = end;
        return true;
    }
    size_t length = strspn(from, "abcdefghijklmnopqrstuvwxyz");
    if (term->factors == PTX_FACTORS)
        return false;
    *at = from + length;
    if (length == 6 && strncmp(from, "blocks", 6) == 0) {
        term->factor[term->factors++].kind = PTX_BLOCKS;
    } else if (length == 7 && strncmp(from, "threads", 7) == 0) {
        term->factor[term->factors++].kind = PTX_THREADS;
    } else if (length == 5 && strncmp(from, "param", 5) == 0) {
        from = skip_space(*at);
        if (!isdigit((unsigned char)*from))
            return false;
        term->factor[term->factors].kind = PTX_PARAM;
        term->factor[term->factors++].param = (uint32_t)strtoul(from, &end, 10);
        *at = end;
    } else {
        return false;
    }
    return true;
}

/* "FACTOR * FACTOR + FACTOR …" to the end of the line. */
static bool read_duration(const char *at, struct ptx_duration *duration) {
    for (;;) {
        if (duration->terms == PTX_TERMS)
            return false;
        struct ptx_term *term = &duration->term[duration->terms++];
        *term = (struct ptx_term){.number = 1};
        for (;;) {
            if (!read_factor(&at, term))
                return false;
            at += strspn(at, " \t\r");
            if (*at != '*')
                break;
            at++;
        }
        if (*at != '+')
            return *at == '\n' || *at == 0;
        at++;
    }
}

/* The duration comment between two places; PTX_BAD where one cannot be read. */
static enum ptx_status find_duration(const char *from, const char *to, struct kernel *kernel) {
    static const char MARK[] = "simgpu:";
    for (const char *at = from; (at = strstr(at, "//")) && at < to; at += 2) {
        const char *text = skip_space(at + 2);
        if (strncmp(text, MARK, sizeof MARK - 1) != 0)
            continue;
        text = skip_space(text + sizeof MARK - 1);
        if (strncmp(text, "duration_ns", 11) != 0)
            return PTX_BAD;
        text = skip_space(text + 11);
        kernel->duration.terms = 0;
        if (*text != '=' || !read_duration(text + 1, &kernel->duration))
            return PTX_BAD;
        for (int term = 0; term < kernel->duration.terms; term++) {
            for (int factor = 0; factor < kernel->duration.term[term].factors; factor++) {
                if (kernel->duration.term[term].factor[factor].kind == PTX_PARAM &&
                    kernel->duration.term[term].factor[factor].param >= kernel->params)
                    return PTX_BAD;
            }
        }
    }
    return PTX_OK;
}

static uint64_t times(uint64_t a, uint64_t b) { return b && a > HOUR_NS / b ? HOUR_NS : a * b; }

uint64_t ptx_duration_ns(const struct kernel *kernel, uint64_t blocks, uint64_t threads, uint32_t multiprocessors,
                         uint64_t (*param)(const void *from, uint32_t index, uint32_t size), const void *from) {
    if (!kernel->duration.terms) {
        uint64_t at_a_time = (uint64_t)(multiprocessors ? multiprocessors : 1) * DEFAULT_BLOCKS_AT_A_TIME;
        return times((blocks + at_a_time - 1) / at_a_time, DEFAULT_WAVE_NS);
    }
    uint64_t sum = 0;
    for (int index = 0; index < kernel->duration.terms; index++) {
        const struct ptx_term *term = &kernel->duration.term[index];
        uint64_t product = term->number;
        for (int factor = 0; factor < term->factors; factor++) {
            switch (term->factor[factor].kind) {
            case PTX_BLOCKS: product = times(product, blocks); break;
            case PTX_THREADS: product = times(product, threads); break;
            case PTX_PARAM: {
                uint32_t number = term->factor[factor].param;
                product = times(product, param(from, number, kernel->param[number].size));
            }
            }
        }
        sum += product < HOUR_NS ? product : HOUR_NS;
    }
    return sum < HOUR_NS ? sum : HOUR_NS;
}

/* ---- declarations ---- */

static bool grow(void **array, uint32_t count, size_t size) {
    if (count & (count - 1))
        return true;
    void *more = realloc(*array, size * (count ? (size_t)count * 2 : 1));
    if (!more)
        return false;
    *array = more;
    return true;
}

static bool copy_name(char *name, const char *token, const char *end) {
    if (end - token >= PTX_NAME)
        return false;
    memcpy(name, token, (size_t)(end - token));
    name[end - token] = 0;
    return true;
}

/* "name[N]" or "name": what follows a type; elements into `count`, the place after it returned. */
static const char *read_declared(const char *at, const char **name, const char **name_end, uint64_t *count) {
    *count = 1;
    *name = next_token(at, name_end);
    if (!*name)
        return NULL;
    const char *end;
    const char *token = next_token(*name_end, &end);
    if (!token || *token != '[')
        return *name_end;
    *count = strtoull(token + 1, NULL, 10);
    const char *close = strchr(token, ']');
    return close ? close + 1 : NULL;
}

/* One ".param …" up to the comma or parenthesis after it. */
static const char *read_param(const char *at, struct kernel *kernel) {
    uint32_t size = 0, alignment = 0;
    for (;;) {
        const char *end;
        const char *token = next_token(at, &end);
        if (!token)
            return NULL;
        if (is_token(token, end, ".align")) {
            token = next_token(end, &end);
            if (!token)
                return NULL;
            alignment = (uint32_t)strtoul(token, NULL, 10);
        } else if (*token == '.') {
            uint32_t found = token_type_bytes(token, end);
            size = found ? found : size;
        } else {
            break;
        }
        at = end;
    }
    const char *name, *name_end;
    uint64_t count;
    at = read_declared(at, &name, &name_end, &count);
    if (!at || !size || count == 0 || count > 4096 || !grow((void **)&kernel->param, kernel->params, sizeof *kernel->param))
        return NULL;
    if (!alignment)
        alignment = size;
    uint32_t offset = (kernel->param_bytes + alignment - 1) / alignment * alignment;
    kernel->param[kernel->params++] = (struct ptx_param){.offset = offset, .size = size * (uint32_t)count};
    kernel->param_bytes = offset + size * (uint32_t)count;
    return at;
}

/* The matching closing brace of the one at `at`. */
static const char *body_end(const char *at) {
    int depth = 0;
    const char *end;
    for (const char *token = next_token(at, &end); token; token = next_token(end, &end)) {
        if (*token == '{')
            depth++;
        if (*token == '}' && --depth == 0)
            return token;
    }
    return NULL;
}

static enum ptx_status read_entry(const char **at, struct image *image) {
    const char *end;
    const char *token = next_token(*at, &end);
    if (!token)
        return PTX_BAD;
    if (!grow((void **)&image->kernel, image->kernels, sizeof *image->kernel))
        return PTX_NO_MEMORY;
    struct kernel *kernel = &image->kernel[image->kernels];
    memset(kernel, 0, sizeof *kernel);
    if (!copy_name(kernel->name, token, end))
        return PTX_BAD;
    image->kernels++;
    for (token = next_token(end, &end); token && *token != '{' && *token != ';'; token = next_token(end, &end)) {
        if (is_token(token, end, ".param") && !(end = read_param(end, kernel)))
            return PTX_BAD;
    }
    if (!token)
        return PTX_BAD;
    *at = end;
    if (*token == ';')
        return PTX_OK;
    const char *close = body_end(token);
    if (!close)
        return PTX_BAD;
    *at = close + 1;
    return find_duration(token, close, kernel);
}

/* ".global .align 4 .u32 name[16] = {…};" */
static enum ptx_status read_global(const char **at, struct image *image) {
    uint32_t size = 0;
    const char *end = *at, *token;
    while ((token = next_token(end, &end)) && (*token == '.' || isdigit((unsigned char)*token))) {
        uint32_t found = token_type_bytes(token, end);
        size = found ? found : size;
    }
    if (!token || !grow((void **)&image->global, image->globals, sizeof *image->global))
        return token ? PTX_NO_MEMORY : PTX_BAD;
    struct ptx_global *global = &image->global[image->globals];
    const char *name, *name_end;
    uint64_t count;
    const char *after = read_declared(token, &name, &name_end, &count);
    if (!after || !size || count > (1ull << 40) || !copy_name(global->name, name, name_end))
        return PTX_BAD;
    global->size = size * count;
    image->globals++;
    *at = after;
    return PTX_OK;
}

enum ptx_status ptx_read(const char *text, struct image *image) {
    memset(image, 0, sizeof *image);
    if (!strstr(text, ".version") || !strstr(text, ".target"))
        return PTX_NOT_AN_IMAGE;
    enum ptx_status status = PTX_OK;
    int depth = 0;
    const char *end;
    for (const char *token = next_token(text, &end); token && status == PTX_OK; token = next_token(end, &end)) {
        if (*token == '{')
            depth++;
        if (*token == '}')
            depth--;
        if (is_token(token, end, ".entry"))
            status = read_entry(&end, image);
        else if (depth == 0 && (is_token(token, end, ".global") || is_token(token, end, ".const")))
            status = read_global(&end, image);
    }
    return status;
}

void ptx_free(struct image *image) {
    for (uint32_t index = 0; index < image->kernels; index++)
        free(image->kernel[index].param);
    free(image->kernel);
    free(image->global);
    memset(image, 0, sizeof *image);
}
