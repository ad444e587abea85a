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

/* For who makes graphs take their memory (growth.h): may this one take some, as it has none that is known? What the driver has
 * reserved on a device (false where it does not tell, or tells what no device has), and what is counted of it; it grew by so
 * much, which is in the account; and this graph has its memory, until it has ended. */
bool es_graph_memory_wanted(CUgraphExec graph);
bool es_graph_memory_reserved(CUdevice device, uint64_t *bytes);
uint64_t es_graph_memory_counted(CUdevice device);
void es_graph_memory_grew(CUdevice device, uint64_t bytes);
void es_graph_memory_backed(CUgraphExec graph);
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
