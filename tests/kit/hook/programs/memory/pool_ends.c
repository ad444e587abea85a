/* A thread of the program ends a pool while another is within a call in which the hook asks pool_driver.c's about it. argv[1]
 * says which call. */
#include <string.h>

#include "../must.h"
#include "driver_api.h"
#include "second.h"

void pools_on_asking(void (*call)(void));
int pools_misused(void);

static CUmemoryPool pool;

static void *end_pool(void *nothing) {
    second_calls();
    MUST(cuMemPoolDestroy(pool));
    second_called();
    return nothing;
}

static void second_ends_it(void) { second_comes(end_pool); }

int main(int argc, char **argv) {
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    const char *what = argc > 1 ? argv[1] : "";
    CUcontext context;
    CUdeviceptr address;
    size_t free_bytes, bytes;

    MUST(cuInit(0));
    MUST(cuCtxCreate_v2(&context, 0, 0));
    MUST(cuMemPoolCreate(&pool, &props));
    MUST(cuDeviceSetMemPool(0, pool));
    pools_on_asking(second_ends_it);
    if (strcmp(what, "asked") == 0)
        MUST(cuMemGetInfo_v2(&free_bytes, &bytes));
    else if (strcmp(what, "trimmed") == 0)
        printf("refused %d\n", cuMemAlloc_v2(&address, (size_t)1 << 40) == CUDA_ERROR_OUT_OF_MEMORY);
    else
        MUST(cuMemAllocAsync(&address, 4096, NULL));
    (void)pthread_join(second, NULL);
    MUST(cuMemGetInfo_v2(&free_bytes, &bytes));
    printf("misused %d\n", pools_misused());
    return 0;
}
