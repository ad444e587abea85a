#ifndef EDGESHARE_GROWTH_H
#define EDGESHARE_GROWTH_H

#include "memory/account.h"

/* What pools and graphs take more of the device when something is allocated from them. All of these call the driver. */

/* An allocation from a noted pool begins: what the pool may grow by is claimed. False: it would pass the cap. */
bool es_growth_claim(struct es_claim *claim, CUmemoryPool pool, CUdevice device, uint64_t bytes);

/* The driver has answered (address 0: it refused), and what the pool has grown by is counted. False: that is more than
 * fits, and the allocation has to be freed again. */
bool es_growth_allocated(struct es_claim *claim, CUmemoryPool pool, CUdeviceptr address, uint64_t bytes);

/* An executable graph is about to be launched or uploaded: what memory it takes the first time it takes now. False: that
 * would pass the cap. Cheap when no graph allocates. */
bool es_growth_graph_fits(CUgraphExec graph, CUstream stream);

#endif
