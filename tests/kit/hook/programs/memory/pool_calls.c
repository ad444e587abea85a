/* How often the hook asks pool_driver.c for one allocation: from a pool, in the default stream and in one of the program's; and
 * a plain one. */
#include "../must.h"
#include "driver_api.h"

int pools_asked(void);

int main(void) {
    static char stream;
    CUcontext context;
    CUdeviceptr address;

    MUST(cuInit(0));
    MUST(cuCtxCreate_v2(&context, 0, 0));
    /* What is found out once. */
    MUST(cuMemAllocAsync(&address, 4096, NULL));
    for (int i = 0; i < 3; i++) {
        const int before = pools_asked();

        if (i < 2)
            MUST(cuMemAllocAsync(&address, 4096, i == 0 ? NULL : (CUstream)&stream));
        else
            MUST(cuMemAlloc_v2(&address, 4096));
        printf("asked %d\n", pools_asked() - before);
    }
    return 0;
}
