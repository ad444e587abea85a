#ifndef EDGESHARE_POOL_USES_H
#define EDGESHARE_POOL_USES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/shared/record.h"
#include "core/tools/clock.h"
#include "core/tools/uses.h"
#include "driver/symbols.h"

/* Who is inside the driver on behalf of pools, which other threads of the program may end. */

extern struct es_uses es_pool_uses __attribute__((visibility("hidden")));

enum { ES_POOLS_PATIENCE_MS = 1000 }; /* with who is inside the driver */

/* A stretch of calls on behalf of pools, or one in which the program is to get one: what is noted in it, or found to be noted, has
 * not ended before its end. Not within another one. */
static inline void es_pools_use(void) { es_uses_begin(&es_pool_uses); }
static inline void es_pools_used(void) { es_uses_end(&es_pool_uses); }

/* The program ends a pool between the two: the first returns when nobody is in such a stretch, or after a second. */
static inline void es_pools_stop(void) { es_uses_stop(&es_pool_uses, ES_POOLS_PATIENCE_MS * ES_MS); }
static inline void es_pools_go_on(void) { es_uses_go_on(&es_pool_uses); }

/* One of the driver's figures of a pool in bytes, in such a stretch; false where it does not tell, or tells what no device has. */
static inline bool es_pools_attribute(CUmemoryPool pool, CUmemPool_attribute which, uint64_t *bytes) {
    cuuint64_t value;

    if (ES_DRIVER(cuMemPoolGetAttribute) == NULL || ES_DRIVER(cuMemPoolGetAttribute)(pool, which, &value) != CUDA_SUCCESS ||
        value > ES_MEMORY_BYTES_MAX)
        return false;
    *bytes = value;
    return true;
}

#endif
