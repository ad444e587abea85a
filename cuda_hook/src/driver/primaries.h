#ifndef EDGESHARE_PRIMARIES_H
#define EDGESHARE_PRIMARIES_H

#include <stdint.h>

#include "driver_api.h"

/* The devices' primary contexts. Whoever makes one, gives it back or resets it takes it here until the driver has answered and the
 * books say so: two that came at once would both take themselves for its maker, or take one that is new for one that ended. */

struct es_primary {
    CUcontext context; /* NULL: there is none, as far as is known here */
    uint32_t retained; /* by the program, and by its green contexts. A reset ends the context and leaves these ("CUDA Driver API",
                          cuDevicePrimaryCtxReset) */
};

/* Waits until nobody has taken a device's, and takes it. That is no lock of the hook's: it lasts for a call of the driver, and where
 * who has it does not come back for ten seconds, another takes it over. NULL where the call is none of the hook's business, or comes
 * from a handler in the thread that has taken one. */
struct es_primary *es_primary_take(CUdevice device);
void es_primary_give(struct es_primary *primary);

/* In a forked child: the parent's contexts are not here. */
void es_primaries_reset(void);

#endif
