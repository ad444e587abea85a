#include "pass/places.h"

#include "backlog/closed.h"
#include "base/state.h"
#include "markers/batches.h"
#include "pass/grant.h"
#include "threads/slots.h"

/* Is there none, and could one be had by marking what is open? */
static bool wanted(int index)
{
    bool full;

    if (index != ES_STREAM_LATER)
        return false;
    es_lock_take(&es_state_lock);
    full = es_closed_full();
    es_lock_give(&es_state_lock);
    return !full;
}

int es_place_of(CUstream stream)
{
    int index = es_stream_index(stream);

    if (wanted(index) && es_slot_self != NULL) {
        es_batch_close(es_slot_self, false);
        index = es_stream_index(stream);
    }
    if (wanted(index) && es_grant_pause()) {
        (void)es_batches_close_all();
        es_grant_resume();
        index = es_stream_index(stream);
    }
    return index;
}
