/* The places of streams (driver/streams.h) where there are more streams than places: whose place was given away between its
 * look for one and its way into the queue (pass/queue.h) does not go, as the end of another's work would be taken for its own.
 * Linked with the hook's own parts; the driver is of some functions that say what they are asked. */
#include <stdint.h>

#include "check.h"
#include "driver/contexts.h"
#include "driver/streams.h"
#include "driver/symbols.h"
#include "link/link.h"
#include "pass/queue.h"
#include "threads/slots.h"

enum { KEY = 1 };

static CUresult current(CUcontext *context) {
    *context = (CUcontext)(uintptr_t)1;
    return CUDA_SUCCESS;
}

static CUresult context_of(CUstream stream, CUcontext *context) {
    (void)stream;
    return current(context);
}

static CUresult event_create(CUevent *event, unsigned int flags) {
    static uintptr_t events;

    (void)flags;
    *event = (CUevent)++events;
    return CUDA_SUCCESS;
}

static CUresult event_record(CUevent event, CUstream stream) {
    (void)event;
    (void)stream;
    return CUDA_SUCCESS;
}

static CUstream stream(uintptr_t number) { return (CUstream)(number * 4096); }

static int index_now(int number) {
    int index;

    es_lock_take(&es_state_lock);
    index = es_stream_index(number);
    es_lock_give(&es_state_lock);
    return index;
}

int main(void) {
    int first, number;

    es_driver[ES_SYMBOL_cuCtxGetCurrent] = (void *)current;
    es_driver[ES_SYMBOL_cuStreamGetCtx] = (void *)context_of;
    es_driver[ES_SYMBOL_cuEventCreate] = (void *)event_create;
    es_driver[ES_SYMBOL_cuEventRecord] = (void *)event_record;
    first = es_stream_number(stream(1));
    CHECK(first >= 0 && es_stream_number(stream(1)) == first && index_now(first) == first % ES_STREAMS);
    for (uintptr_t i = 2; i <= ES_STREAMS; i++)
        CHECK(es_stream_number(stream(i)) >= 0 && index_now(first) >= 0);
    /* One more than there are places: the place that was given longest ago is the one's. */
    number = es_stream_number(stream(ES_STREAMS + 1));
    CHECK(number >= 0 && number % ES_STREAMS == first % ES_STREAMS);
    CHECK(index_now(number) == number % ES_STREAMS && index_now(first) < 0);
    CHECK(es_stream_number(stream(ES_STREAMS + 2)) >= 0 && index_now(number) >= 0);
    CHECK(!es_queue_take(es_slot_mine(), KEY, stream(1), first, es_word_open));
    CHECK(es_slot_mine()->batch.streams == 0);
    /* What its batch has touched nobody takes from it, however many come. */
    CHECK(es_queue_take(es_slot_mine(), KEY, stream(ES_STREAMS + 1), number, es_word_open));
    for (uintptr_t i = 3; i <= 3 * ES_STREAMS; i++)
        CHECK(es_stream_number(stream(ES_STREAMS + i)) >= 0 && index_now(number) >= 0);
    return failures != 0;
}
