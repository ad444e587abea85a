/* What memory is counted in. */
#ifndef SIMGPU_SIZES_H
#define SIMGPU_SIZES_H

#include <stddef.h>

/* Allocations are aligned and counted in blocks of so much (a real driver: 256 or 512 bytes, from chunks of 2 MiB). */
#define BLOCK 512u
#define PAGE 4096u
/* What cuMemCreate, pools and graphs take is counted in pieces of so much (the granularity that drivers report). */
#define GRANULARITY ((size_t)2 << 20)

static inline size_t round_up(size_t size, size_t step) { return (size + step - 1) / step * step; }

#endif
