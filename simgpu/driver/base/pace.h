/* How long calls take. */
#ifndef SIMGPU_PACE_H
#define SIMGPU_PACE_H

#include "driver/base/driver.h"

/* The calling thread spends so long, as it would within a real driver. Under no lock. */
void pace_spend(uint64_t ns);
static inline const struct simgpu_pace *pace_now(void) { return &driver.machine.shared->pace; }

#endif
