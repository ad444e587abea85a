/* Physical memory that handles name and mappings use: of cuMemCreate, or of another process. */
#ifndef SIMGPU_PHYSICAL_H
#define SIMGPU_PHYSICAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver_api.h"

struct physical {
    size_t size;
    CUmemAllocationProp prop;
    CUdevice device; /* −1: of the host */
    int fd;          /* another process's file; −1: this one's */
    uint64_t offset; /* of the first byte in that file; its description is in the page before */
    unsigned int handles, mappings;
    CUmemGenericAllocationHandle handle;
    int32_t export_index; /* −1: never exported */
    uint64_t export_id;
};

/* What a handle names: NULL for none. With one more user (physical_unmapped gives it back). */
struct physical *physical_use(CUmemGenericAllocationHandle handle, const char *call);
/* Gives it another user by its handle, which is returned. */
CUmemGenericAllocationHandle physical_retain(struct physical *physical);
void physical_mapped(struct physical *physical);
void physical_unmapped(struct physical *physical);

/* Gives a new one its first handle, or frees it. */
CUresult physical_enter(struct physical *physical, CUmemGenericAllocationHandle *handle);
/* It is the machine's export of that place and id from here on. */
void physical_exported(struct physical *physical, int32_t index, uint64_t id);
/* What this process has of an export already, with one more handle. */
bool physical_find_export(int32_t index, uint64_t id, CUmemGenericAllocationHandle *handle);

/* Imports what a descriptor leads to, as a handle of this process's own. */
CUresult physical_import(int fd, CUmemGenericAllocationHandle *handle);
CUresult physical_release(CUmemGenericAllocationHandle handle);

#endif
