/* Start and end of the driver in a process, and what its errors are called. */
#include <stdlib.h>
#include <string.h>

#include "driver/base/driver.h"
#include "driver/base/objects.h"
#include "machine/visible.h"

struct driver driver = {.machine = {.lock_fd = -1, .slot = -1}, .lock = PTHREAD_MUTEX_INITIALIZER};

/* CUDA_SUCCESS once cuInit has succeeded; else what calls return. */
static CUresult state = CUDA_ERROR_NOT_INITIALIZED;
static bool forked;

static CUresult state_now(void) { return (CUresult)__atomic_load_n((int *)&state, __ATOMIC_ACQUIRE); }
static void set_state(CUresult value) { __atomic_store_n((int *)&state, (int)value, __ATOMIC_RELEASE); }

CUresult driver_check(const char *call) {
    if (forked)
        misused(call, "", MISUSE_FORKED);
    return state_now();
}

/* Contexts do not survive fork: nothing in the child may touch the parent's queues. */
static void in_child(void) {
    forked = true;
    set_state(CUDA_ERROR_NOT_INITIALIZED);
    machine_forked(&driver.machine);
}

__attribute__((destructor)) static void at_exit(void) {
    if (state_now() == CUDA_SUCCESS)
        set_state(CUDA_ERROR_DEINITIALIZED);
}

/* Finds the machine, once. Under the driver's lock. */
static CUresult find_machine(void) {
    if (driver.machine.shared)
        return CUDA_SUCCESS;
    switch (machine_open(&driver.machine, NULL)) {
    case MACHINE_OK: return CUDA_SUCCESS;
    case MACHINE_MISSING: return CUDA_ERROR_NO_DEVICE;
    case MACHINE_WRONG_VERSION: return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
    default: return CUDA_ERROR_OPERATING_SYSTEM;
    }
}

static CUresult start(void) {
    if (forked) {
        misused("cuInit", "", MISUSE_FORKED);
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    CUresult result = find_machine();
    if (result != CUDA_SUCCESS)
        return result;
    driver.device_count = visible_to_cuda(driver.machine.shared, driver.gpu_of);
    if (driver.device_count == 0)
        return CUDA_ERROR_NO_DEVICE;
    if (machine_join(&driver.machine) != MACHINE_OK)
        return CUDA_ERROR_OPERATING_SYSTEM;
    pthread_atfork(NULL, NULL, in_child);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuInit(unsigned int Flags) {
    if (Flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (state_now() == CUDA_SUCCESS || state_now() == CUDA_ERROR_DEINITIALIZED)
        return state_now();
    pthread_mutex_lock(&driver.lock);
    CUresult result = state_now() == CUDA_SUCCESS ? CUDA_SUCCESS : start();
    if (result == CUDA_SUCCESS)
        set_state(CUDA_SUCCESS);
    pthread_mutex_unlock(&driver.lock);
    return result;
}

/* What the driver says where there is no machine to ask. */
#define VERSION_WITHOUT_MACHINE 12040

int driver_cuda_version(void) {
    pthread_mutex_lock(&driver.lock);
    bool found = find_machine() == CUDA_SUCCESS;
    int version = found ? (int)driver.machine.shared->cuda_version : VERSION_WITHOUT_MACHINE;
    pthread_mutex_unlock(&driver.lock);
    return version;
}

EXPORT CUresult cuDriverGetVersion(int *driverVersion) {
    if (!driverVersion)
        return CUDA_ERROR_INVALID_VALUE;
    *driverVersion = driver_cuda_version();
    return CUDA_SUCCESS;
}

/* ---- errors ---- */

static const struct {
    CUresult code;
    const char *name;
    const char *text;
} ERRORS[] = {
#define ERROR(name, text) {name, #name, text},
#include "driver/base/errors.def"
#undef ERROR
};

static CUresult describe(CUresult error, const char **text, bool name) {
    if (!text)
        return CUDA_ERROR_INVALID_VALUE;
    *text = NULL;
    for (size_t index = 0; index < sizeof ERRORS / sizeof *ERRORS; index++) {
        if (ERRORS[index].code == error)
            *text = name ? ERRORS[index].name : ERRORS[index].text;
    }
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGetErrorName(CUresult error, const char **pStr) { return describe(error, pStr, true); }
EXPORT CUresult cuGetErrorString(CUresult error, const char **pStr) { return describe(error, pStr, false); }

/* ---- objects ---- */

/* So many of a kind are destroyed after one before its handle is another's. */
#define DROPPED_MOST 64

/* A dropped object's first word is its mark, 0; its second links it. */
void *object_make(struct object_pool *pool, size_t size) {
    void **object = NULL;
    pthread_mutex_lock(&pool->lock);
    if (pool->dropped > DROPPED_MOST) {
        object = pool->oldest;
        pool->oldest = object[1];
        pool->dropped--;
    }
    pthread_mutex_unlock(&pool->lock);
    if (!object)
        return calloc(1, size);
    return memset(object, 0, size);
}

void object_drop(struct object_pool *pool, void *object) {
    void **words = object;
    words[0] = NULL;
    pthread_mutex_lock(&pool->lock);
    words[1] = NULL;
    if (pool->dropped++)
        ((void **)pool->latest)[1] = words;
    else
        pool->oldest = words;
    pool->latest = words;
    pthread_mutex_unlock(&pool->lock);
}

void object_free(void *object) {
    static void *dropped[DROPPED_MOST];
    static unsigned int count;
    unsigned int place = __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED) % DROPPED_MOST;
    free(__atomic_exchange_n(&dropped[place], object, __ATOMIC_ACQ_REL));
}
