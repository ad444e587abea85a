/* What a device can do, by its model. */
#ifndef SIMGPU_DEVICE_H
#define SIMGPU_DEVICE_H

#include "machine/machine.h"

/* What a block may have of a multiprocessor's shared memory, once its function asks for it. */
int most_shared_bytes(const struct simgpu_model *model);

#endif
