/* What a module's image says about its kernels. */
#ifndef SIMGPU_PTX_H
#define SIMGPU_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PTX_NAME = 256, PTX_TERMS = 4, PTX_FACTORS = 4 };

enum ptx_factor { PTX_BLOCKS, PTX_THREADS, PTX_PARAM };

/* How long a kernel takes: a sum of products of numbers, `blocks`, `threads` (of a block) and parameters. */
struct ptx_duration {
    int terms; /* 0: the image does not say */
    struct ptx_term {
        uint64_t number;
        int factors;
        struct {
            enum ptx_factor kind;
            uint32_t param;
        } factor[PTX_FACTORS];
    } term[PTX_TERMS];
};

struct kernel {
    char name[PTX_NAME];
    struct ptx_duration duration;
    uint32_t params;
    struct ptx_param {
        uint32_t offset, size;
    } *param;
    uint32_t param_bytes;
};

struct ptx_global {
    char name[PTX_NAME];
    size_t size;
};

struct image {
    bool opaque; /* machine code: any kernel name is taken to be in it */
    uint32_t kernels;
    struct kernel *kernel;
    uint32_t globals;
    struct ptx_global *global;
};

enum ptx_status { PTX_OK, PTX_NOT_AN_IMAGE, PTX_BAD, PTX_NO_MEMORY };

/* Reads PTX text. A kernel's duration is a comment line in its body: "// simgpu: duration_ns = param 0" or
 * "= 2000 + 50 * blocks". Free it in any case. */
enum ptx_status ptx_read(const char *text, struct image *image);
void ptx_free(struct image *image);

/* Duration of a launch; `param(index)` reads a parameter's value. Ends at an hour, so that no sum overflows. */
uint64_t ptx_duration_ns(const struct kernel *kernel, uint64_t blocks, uint64_t threads, uint32_t multiprocessors,
                         uint64_t (*param)(const void *from, uint32_t index, uint32_t size), const void *from);

#endif
