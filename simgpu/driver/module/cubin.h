/* Machine code as a plain ELF file. */
#ifndef SIMGPU_CUBIN_H
#define SIMGPU_CUBIN_H

#include <stdbool.h>

#include "driver/module/ptx.h"

/* Adds a cubin's global variables to what is known of an image, which is to be freed as one of text in any case. The cubin is
 * trusted to be as long as it says, as an image without a length has to be. */
enum ptx_status cubin_variables(const char *cubin, struct image *image);

#endif
