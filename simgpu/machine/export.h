/* What processes export to each other: an entry in the machine's table, with all that hold it. Each call takes the
 * locks that it needs. */
#ifndef SIMGPU_EXPORT_H
#define SIMGPU_EXPORT_H

#include "machine/machine.h"

/* Makes an entry that this process holds once. The bytes, where there are any, pass to it from the process's own
 * memory. Returns its index; -1: the table is full. */
int32_t export_make(struct machine *machine, enum simgpu_export_kind kind, uint32_t gpu, uint64_t bytes);

/* This process holds the entry once more: false where it is not there (any more), or too many hold it. */
bool export_hold(struct machine *machine, int32_t index, uint64_t id);

/* Once less. True: nobody held it any more, and it is over. */
bool export_drop(struct machine *machine, int32_t index, uint64_t id);

/* The entry, or NULL where it is over. */
struct simgpu_export *export_find(const struct machine *machine, int32_t index, uint64_t id);

/* A process is dead. Under the machine's lock. */
void exports_forget(struct machine *machine, uint32_t slot);

#endif
