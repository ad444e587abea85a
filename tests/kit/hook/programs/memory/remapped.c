/* A thread maps memory where another has just unmapped some, before the driver's answer has come back to that one. Says how
 * much is free for it then: what is mapped, and nothing else, is in use. */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

#include "../must.h"
#include "driver_api.h"

enum { MIB = 1 << 20, FIRST_BYTES = 600 * MIB, SECOND_BYTES = 200 * MIB };

static sem_t unmapped, mapped;
static CUdeviceptr range;
static CUmemGenericAllocationHandle second;
static __thread int armed;
static __thread pthread_mutex_t *first;

static int real(const char *name, pthread_mutex_t *mutex) {
    int (*function)(pthread_mutex_t *);

    *(void **)&function = dlsym(RTLD_NEXT, name);
    return function(mutex);
}

/* The simulated driver's, too: the mutex that a call takes first it gives last. */
int pthread_mutex_lock(pthread_mutex_t *mutex) {
    if (armed && first == NULL)
        first = mutex;
    return real("pthread_mutex_lock", mutex);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex) {
    const int result = real("pthread_mutex_unlock", mutex);

    if (armed && mutex == first) {
        armed = 0;
        sem_post(&unmapped);
        sem_wait(&mapped);
    }
    return result;
}

static CUmemGenericAllocationHandle make(size_t bytes) {
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemGenericAllocationHandle handle;

    MUST(cuMemCreate(&handle, bytes, &prop, 0));
    return handle;
}

static void map(CUmemGenericAllocationHandle handle, size_t bytes) {
    MUST(cuMemMap(range, bytes, 0, handle, 0));
    MUST(cuMemRelease(handle));
}

static void *run_other(void *nothing) {
    sem_wait(&unmapped);
    map(second, SECOND_BYTES);
    sem_post(&mapped);
    return nothing;
}

int main(void) {
    size_t free_bytes, total_bytes;
    CUcontext context;
    pthread_t thread;

    sem_init(&unmapped, 0, 0);
    sem_init(&mapped, 0, 0);
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(cuMemAddressReserve(&range, FIRST_BYTES, 0, 0, 0));
    map(make(FIRST_BYTES), FIRST_BYTES);
    second = make(SECOND_BYTES);
    pthread_create(&thread, NULL, run_other, NULL);
    armed = 1;
    MUST(cuMemUnmap(range, FIRST_BYTES));
    pthread_join(thread, NULL);
    MUST(cuMemGetInfo_v2(&free_bytes, &total_bytes));
    printf("%zu\n", (total_bytes - free_bytes) / MIB);
    MUST(cuMemUnmap(range, SECOND_BYTES));
    MUST(cuMemGetInfo_v2(&free_bytes, &total_bytes));
    printf("%zu\n", (total_bytes - free_bytes) / MIB);
    return 0;
}
