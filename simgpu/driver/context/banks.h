/* How wide the banks of shared memory are. */
#ifndef SIMGPU_BANKS_H
#define SIMGPU_BANKS_H

enum { BANKS_DEFAULT, BANKS_OF_4_BYTES, BANKS_OF_8_BYTES };

#endif
