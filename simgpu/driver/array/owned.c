#include "driver/array/owned.h"
#include "driver/capture/capture.h"
#include "driver/stream/queue.h"

void owned_add(struct owned_list *list, struct owned *owned) {
    pthread_mutex_lock(&list->lock);
    owned->next = list->first;
    list->first = owned;
    pthread_mutex_unlock(&list->lock);
}

/* Takes out `wanted`, or where that is NULL the first of the context. */
static struct owned *take(struct owned_list *list, const struct owned *wanted, const struct CUctx_st *context) {
    pthread_mutex_lock(&list->lock);
    struct owned **link = &list->first;
    while (*link && (wanted ? *link != wanted : (*link)->context != context))
        link = &(*link)->next;
    struct owned *taken = *link;
    if (taken)
        *link = taken->next;
    pthread_mutex_unlock(&list->lock);
    return taken;
}

CUresult owned_remove(struct owned_list *list, struct owned *owned) {
    CUresult result = capture_check_unsafe();
    if (result == CUDA_SUCCESS)
        result = queue_drain(owned->context, false);
    if (result == CUDA_SUCCESS && !take(list, owned, NULL))
        result = CUDA_ERROR_INVALID_HANDLE;
    return result;
}

struct owned *owned_of(struct owned_list *list, const struct CUctx_st *context) { return take(list, NULL, context); }
