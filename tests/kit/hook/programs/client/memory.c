#include <stdio.h>
#include <string.h>

#include "client.h"

static CUdeviceptr blocks[MANY];
static int block_count;

/* What each thread gets is another size, so that it is now allowed, now asked for. */
static void *allocate_and_free(void *data) {
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

static CUresult allocate(const char *kind, size_t bytes, CUdeviceptr *block) {
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

CUresult churn(struct said *said) { return in_threads(allocate_and_free, (int)said->c, said->a, said->b); }

CUresult get_block(struct said *said) {
    const CUresult result = allocate(said->word, said->a, &blocks[block_count]);

    block_count += result == CUDA_SUCCESS;
    return result;
}

CUresult free_block(struct said *said) { return cu.cuMemFree_v2(blocks[said->a]); }

CUresult free_block_async(struct said *said) { return cu.cuMemFreeAsync(blocks[said->a], NULL); }

CUresult set_block(struct said *said) {
    (void)said;
    return cu.cuMemsetD8_v2(blocks[0], 0, 1);
}

CUresult set_block_async(struct said *said) {
    (void)said;
    return cu.cuMemsetD8Async(blocks[0], 0, 1, NULL);
}

CUresult fetch_block(struct said *said) {
    char byte;

    (void)said;
    return cu.cuMemcpyDtoH_v2(&byte, blocks[0], 1);
}

CUresult memory_info(struct said *said) {
    size_t free_bytes = 0, total_bytes = 0;
    const CUresult result = cu.cuMemGetInfo_v2(&free_bytes, &total_bytes);

    snprintf(said->more, sizeof(said->more), " %zu %zu", free_bytes, total_bytes);
    return result;
}

CUresult memory_total(struct said *said) {
    size_t total_bytes = 0;
    const CUresult result = cu.cuDeviceTotalMem_v2(&total_bytes, 0);

    snprintf(said->more, sizeof(said->more), " %zu", total_bytes);
    return result;
}
