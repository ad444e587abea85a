/* Slices of an EdgeTPU, for an application that keeps the device open or uses it several times in a row. Without these
 * two functions a process has its slice from the first open of the device to the last close.
 *
 *     #include "edgeshare_slice.h"
 *
 *     while (frames()) {
 *         if (edgeshare_slice_begin() > 0)
 *             load_model();             // another process may have had the device
 *         infer();
 *         edgeshare_slice_end();
 *     }
 *
 * The functions are in libedgeshare_cuda.so, which is preloaded into a container that has a share: nothing is to be linked.
 * Where it is not there, both do nothing. */
#ifndef EDGESHARE_SLICE_H
#define EDGESHARE_SLICE_H

#ifdef __cplusplus
extern "C" {
#endif

/* Waits for a slice. 0: what this process left on the device is still there. 1: another process may have had it, or what was
 * set up on a descriptor is gone: load what is needed. -1, with errno: the device cannot be had. May be nested. */
extern int edgeshare_slice_begin(void) __attribute__((weak));

/* Ends it. 0: it is given back; descriptors of the device stay valid, but the device is not behind them until the next slice
 * begins. 1: it is not, and others wait as long as they have to: the device is mapped, or in use by another thread. */
extern int edgeshare_slice_end(void) __attribute__((weak));

#ifdef __cplusplus
}
#endif

#ifndef EDGESHARE_SLICE_INSIDE
#define edgeshare_slice_begin() (edgeshare_slice_begin ? edgeshare_slice_begin() : 0)
#define edgeshare_slice_end() (edgeshare_slice_end ? edgeshare_slice_end() : 0)
#endif

#endif
