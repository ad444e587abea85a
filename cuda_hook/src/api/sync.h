#ifndef EDGESHARE_SYNC_H
#define EDGESHARE_SYNC_H

#include "driver_api.h"

/* The calling thread has waited for all that was queued in this stream. */
void es_sync_done(CUstream stream);

#endif
