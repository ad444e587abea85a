/* Launches as before CUDA 4.0: block, shared memory and parameters are set one by one and stay with the function. */
#include <stdlib.h>
#include <string.h>

#include "driver/base/driver.h"
#include "driver/execution/launch.h"
#include "driver/module/function.h"

enum { PARAM_BYTES = 4096 }; /* what a kernel's parameters may take (CUDA C++ Programming Guide) */

struct setting {
    CUfunction function;
    unsigned int block[3];
    unsigned int shared_bytes;
    size_t param_bytes;
    char params[PARAM_BYTES];
    struct setting *next;
};

/* Kept to the end of the process: programs that launch like this have a handful of functions. */
static struct setting *settings;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* What was set for a function, with the lock held on success. */
static CUresult find_setting(CUfunction handle, struct setting **found) {
    CHECK_DRIVER();
    struct CUfunc_st *function;
    CUresult result = find_function(handle, &function, __func__);
    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    struct setting *setting = settings;
    while (setting && setting->function != handle)
        setting = setting->next;
    if (!setting) {
        setting = calloc(1, sizeof *setting);
        if (!setting) {
            pthread_mutex_unlock(&lock);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        setting->function = handle;
        setting->block[0] = setting->block[1] = setting->block[2] = 1;
        setting->next = settings;
        settings = setting;
    }
    *found = setting;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncSetBlockShape(CUfunction hfunc, int x, int y, int z) {
    struct setting *setting;
    if (x <= 0 || y <= 0 || z <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = find_setting(hfunc, &setting);
    if (result != CUDA_SUCCESS)
        return result;
    setting->block[0] = (unsigned int)x;
    setting->block[1] = (unsigned int)y;
    setting->block[2] = (unsigned int)z;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncSetSharedSize(CUfunction hfunc, unsigned int bytes) {
    struct setting *setting;
    CUresult result = find_setting(hfunc, &setting);
    if (result != CUDA_SUCCESS)
        return result;
    setting->shared_bytes = bytes;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuParamSetSize(CUfunction hfunc, unsigned int numbytes) {
    struct setting *setting;
    if (numbytes > PARAM_BYTES)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = find_setting(hfunc, &setting);
    if (result != CUDA_SUCCESS)
        return result;
    setting->param_bytes = numbytes;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

static CUresult set_param(CUfunction handle, int offset, const void *value, size_t bytes) {
    struct setting *setting;
    if (!value || offset < 0 || (size_t)offset > PARAM_BYTES || bytes > PARAM_BYTES - (size_t)offset)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = find_setting(handle, &setting);
    if (result != CUDA_SUCCESS)
        return result;
    memcpy(setting->params + offset, value, bytes);
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuParamSeti(CUfunction hfunc, int offset, unsigned int value) {
    return set_param(hfunc, offset, &value, sizeof value);
}
EXPORT CUresult cuParamSetf(CUfunction hfunc, int offset, float value) { return set_param(hfunc, offset, &value, sizeof value); }
EXPORT CUresult cuParamSetv(CUfunction hfunc, int offset, void *ptr, unsigned int numbytes) {
    return set_param(hfunc, offset, ptr, numbytes);
}

static CUresult launch(CUfunction handle, int width, int height, CUstream stream) {
    struct setting *setting;
    if (width <= 0 || height <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = find_setting(handle, &setting);
    if (result != CUDA_SUCCESS)
        return result;
    struct setting set = *setting;
    pthread_mutex_unlock(&lock);
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, set.params, CU_LAUNCH_PARAM_BUFFER_SIZE, &set.param_bytes,
                     CU_LAUNCH_PARAM_END};
    struct launch_shape shape = {
        {(unsigned int)width, (unsigned int)height, 1}, {set.block[0], set.block[1], set.block[2]}, set.shared_bytes};
    return launch_kernel(handle, &shape, stream, NULL, set.param_bytes ? extra : NULL);
}

EXPORT CUresult cuLaunch(CUfunction f) { return launch(f, 1, 1, CU_STREAM_LEGACY); }
EXPORT CUresult cuLaunchGrid(CUfunction f, int grid_width, int grid_height) {
    return launch(f, grid_width, grid_height, CU_STREAM_LEGACY);
}
EXPORT CUresult cuLaunchGridAsync(CUfunction f, int grid_width, int grid_height, CUstream hStream) {
    return launch(f, grid_width, grid_height, hStream);
}
