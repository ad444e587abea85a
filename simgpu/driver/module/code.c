#include "driver/module/code.h"
#include "driver/base/driver.h"
#include "driver/base/objects.h"
#include "driver/base/sizes.h"
#include "driver/context/context.h"
#include "driver/module/function.h"
#include "driver/module/module.h"

#include <stdlib.h>
#include <string.h>

/* A context that has a module's image. */
struct code {
    struct CUctx_st *context;
    uint64_t context_id;
    size_t charged;
    struct code *next;
};

/* For the lists of all modules. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The magic numbers of machine code: ELF (cubin), a fat binary, the wrapper that nvcc puts around one. */
enum { ELF = 0x464c457f, FAT = (int)0xba55ed50, WRAPPER = 0x466243b1 };

static size_t elf_bytes(const char *image) {
    uint64_t sections, programs;
    uint16_t program_size, program_count, section_size, section_count;
    memcpy(&programs, image + 32, sizeof programs);
    memcpy(&sections, image + 40, sizeof sections);
    memcpy(&program_size, image + 54, sizeof program_size);
    memcpy(&program_count, image + 56, sizeof program_count);
    memcpy(&section_size, image + 58, sizeof section_size);
    memcpy(&section_count, image + 60, sizeof section_count);
    uint64_t end = sections + (uint64_t)section_size * section_count;
    uint64_t other = programs + (uint64_t)program_size * program_count;
    return end > other ? end : other;
}

static size_t fat_bytes(const char *image) {
    uint16_t header;
    uint64_t rest;
    memcpy(&header, image + 6, sizeof header);
    memcpy(&rest, image + 8, sizeof rest);
    return header + rest;
}

size_t image_bytes(const void *image) {
    uint32_t magic;
    const void *inner;
    memcpy(&magic, image, sizeof magic);
    switch ((int)magic) {
    case ELF: return elf_bytes(image);
    case FAT: return fat_bytes(image);
    case WRAPPER: memcpy(&inner, (const char *)image + 8, sizeof inner); return inner ? image_bytes(inner) : 0;
    default: return strlen(image);
    }
}

/* CUDA loads lazily on Linux since 12.2, and when it is told to since 11.7 ("CUDA C++ Programming Guide", lazy loading). */
bool loads_lazily(void) {
    const char *chosen = getenv("CUDA_MODULE_LOADING");
    int version = (int)driver.machine.shared->cuda_version;
    if (version >= 11070 && chosen && strcmp(chosen, "LAZY") == 0)
        return true;
    return version >= 12020 && !(chosen && strcmp(chosen, "EAGER") == 0);
}

/* With the lock. */
static struct code *find(const struct CUmod_st *module, const struct CUctx_st *context) {
    for (struct code *code = module->code; code; code = code->next) {
        if (code->context == context && code->context_id == context->id)
            return code;
    }
    return NULL;
}

bool code_is_loaded(const struct CUmod_st *module, const struct CUctx_st *context) {
    pthread_mutex_lock(&lock);
    bool loaded = find(module, context) != NULL;
    pthread_mutex_unlock(&lock);
    return loaded;
}

CUresult code_load(struct CUmod_st *module, struct CUctx_st *context) {
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    if (!find(module, context)) {
        size_t charged = round_up(module->image_bytes, BLOCK);
        struct code *code = calloc(1, sizeof *code);
        if (code && machine_take_memory(&driver.machine, context->gpu, context->index, charged)) {
            *code = (struct code){context, context->id, charged, module->code};
            module->code = code;
        } else {
            free(code);
            result = CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    pthread_mutex_unlock(&lock);
    return result;
}

void code_unload(struct CUmod_st *module) {
    pthread_mutex_lock(&lock);
    while (module->code) {
        struct code *code = module->code;
        struct CUctx_st *context = code->context;
        module->code = code->next;
        /* A context that is over, or about to be, has given everything back, or will. */
        if (context->mark == MARK_CONTEXT && context->id == code->context_id)
            machine_give_memory(&driver.machine, context->gpu, context->index, code->charged);
        free(code);
    }
    pthread_mutex_unlock(&lock);
}

CUresult function_load(struct CUfunc_st *function, struct CUctx_st *context) {
    if (__atomic_load_n(&function->loaded_in, __ATOMIC_RELAXED) == context->id)
        return CUDA_SUCCESS;
    CUresult result = code_load(function->module, context);
    if (result == CUDA_SUCCESS)
        __atomic_store_n(&function->loaded_in, context->id, __ATOMIC_RELAXED);
    return result;
}
