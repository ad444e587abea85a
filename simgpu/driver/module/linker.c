/* The driver's linker: what was added becomes one image. There is no machine code here: linked PTX stays PTX. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver/base/driver.h"
#include "driver/base/entries.h"
#include "driver/base/objects.h"
#include "driver/context/context.h"

enum input { INPUT_CUBIN, INPUT_PTX, INPUT_FATBIN, INPUT_OBJECT, INPUT_LIBRARY, INPUT_NVVM };

struct link {
    enum mark mark;
    char *image; /* PTX with a 0 at the end, or the first machine code that was added */
    size_t size;
    bool opaque;
};

static struct object_pool pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

#define LINK(link)                            \
    do {                                      \
        CURRENT(context);                     \
        (void)context;                        \
        if (!LIVES(link, MARK_LINK))          \
            return CUDA_ERROR_INVALID_HANDLE; \
    } while (0)

EXPORT CUresult cuLinkCreate_v2(unsigned int numOptions, CUjit_option *options, void **optionValues, struct link **stateOut) {
    CURRENT(context);
    (void)context;
    if (!stateOut || (numOptions && (!options || !optionValues)))
        return CUDA_ERROR_INVALID_VALUE;
    *stateOut = object_make(&pool, sizeof **stateOut);
    if (!*stateOut)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*stateOut)->mark = MARK_LINK;
    return CUDA_SUCCESS;
}

static CUresult add(struct link *link, int type, const char *data, size_t size) {
    bool opaque = type != INPUT_PTX;
    if (type < INPUT_CUBIN || type > INPUT_NVVM || !data || !size)
        return CUDA_ERROR_INVALID_VALUE;
    /* What is linked to PTX, a library of the device's say, has no kernel that PTX does not call. */
    if (opaque && link->image)
        return CUDA_SUCCESS;
    size_t before = link->opaque ? 0 : link->size;
    size_t length = opaque ? size : strnlen(data, size);
    char *image = realloc(link->image, before + length + 2);
    if (!image)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(image + before, data, length);
    link->image = image;
    link->size = before + length;
    link->opaque = opaque;
    if (!opaque)
        image[link->size++] = '\n';
    image[link->size] = 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuLinkAddData_v2(struct link *state, int type, void *data, size_t size, const char *name, unsigned int numOptions,
                                 CUjit_option *options, void **optionValues) {
    LINK(state);
    (void)name;
    if (numOptions && (!options || !optionValues))
        return CUDA_ERROR_INVALID_VALUE;
    return add(state, type, data, size);
}

EXPORT CUresult cuLinkAddFile_v2(struct link *state, int type, const char *path, unsigned int numOptions, CUjit_option *options,
                                 void **optionValues) {
    LINK(state);
    if (!path || (numOptions && (!options || !optionValues)))
        return CUDA_ERROR_INVALID_VALUE;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (fd < 0)
        return CUDA_ERROR_FILE_NOT_FOUND;
    CUresult result = CUDA_ERROR_OPERATING_SYSTEM;
    char *data = fstat(fd, &status) == 0 ? malloc((size_t)status.st_size + 1) : NULL;
    ssize_t got = data ? read(fd, data, (size_t)status.st_size) : -1;
    close(fd);
    if (got >= 0)
        result = add(state, type, data, (size_t)got);
    free(data);
    return result;
}

EXPORT CUresult cuLinkComplete(struct link *state, void **cubinOut, size_t *sizeOut) {
    LINK(state);
    if (!cubinOut)
        return CUDA_ERROR_INVALID_VALUE;
    if (!state->image)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    *cubinOut = state->image;
    if (sizeOut)
        *sizeOut = state->size + 1;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuLinkDestroy(struct link *state) {
    LINK(state);
    free(state->image);
    object_drop(&pool, state);
    return CUDA_SUCCESS;
}
