/* The file that all of this process's device memory lies in. */
#ifndef SIMGPU_BACKING_H
#define SIMGPU_BACKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A range of the file, of whole pages; 0: there is none. Elsewhere `fd` −1 is this process's own file. */
uint64_t backing_take(size_t size);
void backing_give(int fd, uint64_t offset, size_t size);
/* Maps a range, at an address or (0) anywhere. 0: it cannot be. */
uintptr_t backing_map(int fd, uint64_t offset, size_t size, uintptr_t at, bool usable);
/* Maps a range of this process's file below 4 GiB. 0: there is no room. */
uintptr_t backing_map_low(uint64_t offset, size_t size);
/* Reads and writes parts that are mapped nowhere. */
bool backing_read(int fd, uint64_t offset, void *data, size_t size);
bool backing_write(uint64_t offset, const void *data, size_t size);
/* A descriptor that leads another process to a place of the file; −1: it cannot be. */
int backing_export(int fd, uint64_t offset);
/* The place that such a descriptor leads to; 0: it is none. */
uint64_t backing_place(int fd);
/* This process's own file; −1: none yet. */
int backing_file(void);

#endif
