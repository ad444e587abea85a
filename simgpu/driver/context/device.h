/* What a device can do. */
#ifndef SIMGPU_DEVICE_H
#define SIMGPU_DEVICE_H

#include "driver_api.h"
#include "machine/machine.h"

/* What a block may have of a multiprocessor's shared memory, once its function asks for it. */
int most_shared_bytes(const struct simgpu_model *model);

/* How large textures and surfaces may be on every GPU since Volta ("CUDA C++ Programming Guide", technical specifications); 0
 * of any other attribute. */
int extent_of_all(CUdevice_attribute attribute);

#endif
