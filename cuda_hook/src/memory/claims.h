#ifndef EDGESHARE_CLAIMS_H
#define EDGESHARE_CLAIMS_H

#include "memory/account.h"

/* Claims of memory that is about to be asked for. What pools and graphs keep for later goes before anything is refused: so
 * these may call the driver, and no lock is held by who calls them. */

/* May this process take so much? False: it would pass the cap, or no device has so much (ES_MEMORY_BYTES_MAX). */
bool es_claim_take(struct es_claim *claim, CUdevice device, uint64_t bytes);

/* May this process take so much on the device of the current context, which is told, too? Without a context nothing is
 * counted: the driver will have something to say. */
bool es_claim_take_here(struct es_claim *claim, CUcontext *context, uint64_t bytes);

/* The driver took so much, more or less than was claimed. False: the rest does not fit, and the claim is as it was. */
bool es_claim_fit(struct es_claim *claim, uint64_t bytes);

/* May this process make a context there? */
bool es_claim_context(struct es_claim *claim, CUdevice device);

#endif
