#include <pthread.h>

#include "client.h"

CUresult in_threads(void *(*work)(void *), int threads, unsigned long long size, unsigned long long count) {
    pthread_t ids[64];
    struct job jobs[64];
    CUresult result = CUDA_SUCCESS;

    for (int i = 0; i < threads; i++) {
        jobs[i] = (struct job){size, count, i < stream_count ? i : 0, CUDA_SUCCESS};
        pthread_create(&ids[i], NULL, work, &jobs[i]);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        if (jobs[i].result != CUDA_SUCCESS)
            result = jobs[i].result;
    }
    return result;
}
