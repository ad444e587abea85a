/* Memory that programs allocate and free. */
#ifndef SIMGPU_MEMORY_H
#define SIMGPU_MEMORY_H

#include "driver/allocation/allocation.h"

/* A new allocation, where the context's state and what is captured allow it. */
CUresult allocate(struct CUctx_st *context, size_t size, enum allocation_kind kind, unsigned int flags,
                  struct CUmemPoolHandle_st *pool, uintptr_t *made);
/* Frees what cuMemFree and cuMemFreeAsync free, of whatever kind it is. */
CUresult release_device(uintptr_t begin);

#endif
