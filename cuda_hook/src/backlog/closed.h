#ifndef EDGESHARE_CLOSED_H
#define EDGESHARE_CLOSED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/state.h"
#include "core/times/overlap.h"
#include "core/times/spent.h"
#include "driver_api.h"

enum { ES_CLOSED = 256 };

/* The batches of launches that are closed and have not ended, as far as is known, oldest first. */
struct es_closed {
    CUevent start; /* where its burst began, or NULL: it follows the one before */
    CUevent end;   /* NULL: no marker could be had, it ends by its estimate */
    int context, start_context;
    int stream;              /* that its end stands in; ES_STREAM_NONE where it has none */
    bool over;               /* its stream is through with it, though one before it has not ended */
    struct es_queued queued; /* when it was opened, with all of it; of the last of several markers alone */
    struct es_work work;
    uint64_t awaited_ns; /* from then on it waited for the device to come to its context; 0: it did not */
    bool amid;           /* opened while other work was queued, or about to be */
    bool held;           /* behind a function of the host: from its start alone is known how long it took */
    bool beside; /* others' gates were open, too, when it was opened, closed or seen to have ended, or siblings used the device */
    uint64_t siblings; /* what these had done when it was opened */
    uint64_t key;      /* 0: of several functions, teaches nothing */
    uint64_t launches;
};

/* Closes one: it stands behind the others, of which there are less than ES_CLOSED. */
void es_closed_push(struct es_closed batch) ES_LOCKED(es_state_lock);

/* The n-th oldest, with place less than their count. */
struct es_closed *es_closed_at(uint32_t place) ES_LOCKED(es_state_lock);

/* The oldest has ended, and was seen to at this time. */
void es_closed_pop(uint64_t ended_ns) ES_LOCKED(es_state_lock);

/* A batch's stream is through with it, and it is not the oldest. */
void es_closed_pass_over(struct es_closed *batch) ES_LOCKED(es_state_lock);

/* By their estimates, what those take that are over and stand behind one that has not ended. */
uint64_t es_closed_over_ns(void) ES_LOCKED(es_state_lock);

/* By their estimates, what is closed and not over in a stream. */
uint64_t es_closed_in_stream_ns(int stream) ES_LOCKED(es_state_lock);

/* The launches that are closed and not over, in a stream and in others. */
struct es_launches {
    uint64_t in_stream;
    uint64_t beside;
};
struct es_launches es_closed_launches(int stream) ES_LOCKED(es_state_lock);

/* By their estimates, what is closed and not over in the stream that has most. */
uint64_t es_closed_longest_ns(void) ES_LOCKED(es_state_lock);

/* The streams in which something is closed and not over. */
uint64_t es_closed_streams(void) ES_LOCKED(es_state_lock);

/* How many there are. */
uint32_t es_closed_count(void) ES_LOCKED(es_state_lock);

/* Is there no room for a batch, which may need one in each stream? */
bool es_closed_full(void) ES_LOCKED(es_state_lock);

/* A context ends: its markers are nobody's any more. */
void es_closed_forget(int context) ES_LOCKED(es_state_lock);

/* This place is another stream's from now on. */
void es_closed_leave_stream(int stream) ES_LOCKED(es_state_lock);

/* In a forked child: what the parent queued is not its. */
void es_closed_reset(void);

#endif
