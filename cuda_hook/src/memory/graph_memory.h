#ifndef EDGESHARE_GRAPH_MEMORY_H
#define EDGESHARE_GRAPH_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "driver_api.h"

/* Memory that the driver keeps for the memory nodes of graphs, by device. It is counted as the driver has reserved it, and
 * looked at wherever that may have changed; to look is to call the driver. */

/* Some graph of this process allocates; from then on each that is launched or uploaded is looked after. */
void es_graph_memory_expect(void);
void es_graph_memory_launched(void);

/* An executable graph is about to be launched or uploaded: what memory it takes the first time it takes now. False: that
 * would pass the cap. Cheap when no graph allocates. */
bool es_graph_memory_fits(CUgraphExec graph, CUstream stream);
void es_graph_memory_ended(CUgraphExec graph);

/* Looks at what a device has reserved; returns how much less that is than before. */
uint64_t es_graph_memory_look(CUdevice device);

/* Makes a device give back what graphs do not use; returns how much that is. */
uint64_t es_graph_memory_trim(CUdevice device);

/* The program has asked the driver for just that. */
void es_graph_memory_trimmed(void);

/* In a forked child. */
void es_graph_memory_reset(void);

#endif
