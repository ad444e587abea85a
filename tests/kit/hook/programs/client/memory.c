#include <string.h>

#include "client.h"

/* What each thread gets is another size, so that it is now allowed, now asked for. */
void *allocate_and_free(void *data) {
    struct job *job = data;

    job->result = cu.cuCtxSetCurrent(context);
    for (unsigned long long i = 1; i <= job->count && job->result == CUDA_SUCCESS; i++) {
        const int which = (int)(i % 3);
        CUdeviceptr block;
        size_t pitch;

        job->result = which == 0   ? cu.cuMemAlloc_v2(&block, job->size * (size_t)i)
                      : which == 1 ? cu.cuMemAllocPitch_v2(&block, &pitch, 1024, job->size / 1024, 4)
                                   : cu.cuMemAllocAsync(&block, job->size, NULL);
        if (job->result == CUDA_SUCCESS)
            job->result = which == 2 ? cu.cuMemFreeAsync(block, NULL) : cu.cuMemFree_v2(block);
        else if (job->result == CUDA_ERROR_OUT_OF_MEMORY)
            job->result = CUDA_SUCCESS;
    }
    return NULL;
}

CUresult allocate(const char *kind, size_t bytes, CUdeviceptr *block) {
    size_t pitch;

    if (strcmp(kind, "pitch") == 0)
        return cu.cuMemAllocPitch_v2(block, &pitch, bytes / 1024, 1024, 4);
    if (strcmp(kind, "managed") == 0)
        return cu.cuMemAllocManaged(block, bytes, CU_MEM_ATTACH_GLOBAL);
    if (strcmp(kind, "async") == 0)
        return cu.cuMemAllocAsync(block, bytes, NULL);
    if (strcmp(kind, "nowhere") == 0)
        return cu.cuMemAlloc_v2(NULL, bytes);
    return cu.cuMemAlloc_v2(block, bytes);
}
