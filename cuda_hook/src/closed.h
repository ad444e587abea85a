#ifndef EDGESHARE_CLOSED_H
#define EDGESHARE_CLOSED_H

#include <stdbool.h>
#include <stdint.h>

#include "core/spent.h"
#include "driver_api.h"

enum { ES_CLOSED = 256 };

/* A batch of launches that is closed and has not ended, as far as is known. */
struct es_closed {
    CUevent start; /* where its burst began, or NULL: it follows the one before */
    CUevent end;   /* NULL: no marker could be had, it ends by its estimate */
    int context, start_context;
    struct es_work work;
    uint64_t awaited_ns; /* from then on it waited for the device to come to its context; 0: it did not */
    bool amid; /* opened while other work was queued, or about to be */
    uint64_t key; /* 0: of several functions, teaches nothing */
    uint64_t launches;
};

/* Closes one: it stands behind the others. With the lock held, and less than ES_CLOSED there. */
void es_closed_push(struct es_closed batch);

/* A marker is not needed any more: back to the pool of its context, unless the helper sleeps on it. With the lock held. */
void es_closed_give(int context, CUevent event);

/* So much by its estimate was waited for and ended by no marker: it is counted. With the lock held. */
void es_closed_waited(uint64_t used_ns);

/* Takes those off that have ended, and counts their GPU time. Never blocks; returns at once when another thread is at
 * it. */
void es_closed_collect(void);

/* Waits until the oldest has ended (in the driver, sleeping), and collects. For the helper alone. False when there is
 * none. */
bool es_closed_await(void);

/* How many there are; with the lock held. */
uint32_t es_closed_count(void);

/* Is there no room for a batch, which may need one in each stream? With the lock held. */
bool es_closed_full(void);

/* A context ends: its markers are nobody's any more. With the lock held. */
void es_closed_forget(int context);

/* In a forked child: what the parent queued is not its. */
void es_closed_reset(void);

#endif
