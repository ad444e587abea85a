/* Objects that end with their context: arrays and mipmapped arrays. */
#ifndef SIMGPU_OWNED_H
#define SIMGPU_OWNED_H

#include "driver/base/objects.h"

/* What each begins with. */
struct owned {
    enum mark mark;
    struct CUctx_st *context;
    uint64_t context_id;
    struct owned *next;
};

/* All of one kind in the process. */
struct owned_list {
    pthread_mutex_t lock;
    struct owned *first;
};

void owned_add(struct owned_list *list, struct owned *owned);
/* Takes one out once all work of its context is done; CUDA_ERROR_INVALID_HANDLE where it is not there any more. */
CUresult owned_remove(struct owned_list *list, struct owned *owned);
/* Takes one out that is this context's; NULL: there is none left. */
struct owned *owned_of(struct owned_list *list, const struct CUctx_st *context);

#endif
