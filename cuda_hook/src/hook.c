#include "api/virtual.h"
#include "backlog/backlog.h"
#include "backlog/submitted.h"
#include "base/events.h"
#include "base/state.h"
#include "driver/contexts.h"
#include "driver/markers.h"
#include "driver/primaries.h"
#include "driver/streams.h"
#include "link/link.h"
#include "link/session.h"
#include "markers/batches.h"
#include "markers/collect.h"
#include "markers/ends.h"
#include "markers/stops.h"
#include "memory/account.h"
#include "memory/amounts.h"
#include "memory/graph_memory.h"
#include "memory/pools.h"
#include "pass/grant.h"
#include "pass/helper.h"
#include "threads/slots.h"
#include "tpu/tpu.h"
#include "usage/hint.h"
#include "usage/measured.h"
#include "usage/thinks.h"

/* What each floor does when something happens on one below it (base/events.h). */

/* The account is held from the one to the other. */
ES_UNCHECKED void es_on_welcome(void) { es_amounts_hold(); }

ES_UNCHECKED void es_on_welcomed(void) { es_amounts_let(); }

void es_on_session(uint64_t now_ns) {
    es_grant_begin();
    es_measured.gpu_ns = 0;
    /* What a fresh page says of this client's use of the device begins with what is queued and waits now. */
    es_used_wait(es_link_used(), es_threads.waiting > 0, now_ns);
    if (es_submitted_drained())
        es_link_drained(now_ns);
    else
        es_link_submits(now_ns);
}

void es_on_joined(void) { es_amounts_declare(); }

void es_on_context_ended(int context) {
    es_streams_forget(context);
    es_batches_forget(context);
    es_slots_forget_words();
}

void es_on_place_left(int stream) { es_ends_leave_stream(stream); }

void es_on_forked(void) {
    es_state_reset();
    es_session_reset();
    es_link_reset();
    es_slots_reset();
    es_backlog_reset();
    es_measured_reset();
    es_hint_reset();
    es_ends_reset();
    es_collect_reset();
    es_thinks_reset();
    es_stop_reset();
    es_markers_reset();
    es_contexts_reset();
    es_primaries_reset();
    es_streams_reset();
    es_grant_reset();
    es_account_reset();
    es_pools_reset();
    es_graph_memory_reset();
    es_virtual_reset();
    es_helper_reset();
}

void es_on_tpu_forked(void) {
    es_tpu_session_reset();
    es_tpu_holds_reset();
    es_tpu_slices_reset();
}
