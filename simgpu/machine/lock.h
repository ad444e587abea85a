/* A lock word in shared memory. Its holder may die at any time, in any pid namespace: the word holds a number that the
 * holder claimed with a record lock, which the kernel drops when the process ends. */
#ifndef SIMGPU_LOCK_H
#define SIMGPU_LOCK_H

#include "machine/machine.h"

/* Takes the lock. True: a dead process held it, and what it guards may be half done. */
bool word_lock(struct machine *machine, uint32_t *word);
void word_unlock(uint32_t *word);

/* Offsets in the file of record locks: the process slots come first, then the holders. */
bool record_lock(int fd, uint32_t offset);
bool record_held(int fd, uint32_t offset, int32_t *pid);

#endif
