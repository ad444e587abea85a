#include "memory/amounts.h"

#include <errno.h>
#include <string.h>

#include "base/life.h"
#include "base/state.h"
#include "core/shared/allowance.h"
#include "core/tools/clock.h"
#include "link/greeting.h"
#include "link/joining.h"
#include "link/link.h"
#include "link/session.h"

struct es_lock es_amounts_lock;
struct es_amount es_amounts[ES_ORDINALS];
uint32_t es_amounts_session;

bool es_amounts_counts(void) { return es_mode_now() != ES_OUT && es_mode_now() != ES_NEW && !es_life_apart(); }

bool es_amounts_joined(void) {
    const uint32_t now = __atomic_load_n(&es_link.session, __ATOMIC_ACQUIRE);

    if (now != es_amounts_session) {
        es_amounts_session = now;
        for (int i = 0; i < ES_ORDINALS; i++)
            es_amounts[i].known = es_amounts[i].contexts_known = 0;
    }
    return es_mode_now() == ES_JOINED;
}

void es_amounts_hold(void) { es_lock_take(&es_amounts_lock); }

void es_amounts_let(void) { es_lock_give(&es_amounts_lock); }

/* Is there a manager? One that went away may be back. */
static bool reached(void) {
    if (es_mode_now() == ES_AWAY || es_mode_now() == ES_UNSHARED)
        (void)es_join_again();
    return es_mode_now() == ES_JOINED;
}

void es_amounts_tell(uint16_t kind, uint32_t memory_kind, uint64_t bytes, int index) {
    struct es_memory record = {{kind, sizeof(record), 0}, bytes, (uint32_t)index, memory_kind};
    const int error = errno;
    bool sent = false;

    for (int i = 0; i < ES_ANSWER_MS && !sent && es_mode_now() == ES_JOINED; i++) {
        es_lock_take(&es_state_lock);
        sent = es_mode_now() == ES_JOINED && es_session_send(&record);
        es_lock_give(&es_state_lock);
        if (!sent)
            es_progress_wait(__atomic_load_n(&es_progress, __ATOMIC_RELAXED), ES_MS);
    }
    if (!sent)
        es_session_end("it takes no records");
    errno = error;
}

uint32_t es_amounts_ask(int index, uint32_t memory_kind, uint64_t bytes, bool *granted) {
    struct es_reserve record = {{ES_RESERVE, sizeof(record), es_session_number()}, bytes, (uint32_t)index, memory_kind};
    struct es_reserved answer;
    const uint32_t answered = reached() ? es_session_ask(&record, &answer, ES_RESERVED) : 0;

    if (answered != 0)
        *granted = answer.granted != 0;
    return answered;
}

void es_amounts_put_back(int index, uint64_t bytes) {
    if (index < ES_DEVICES_MAX)
        es_allowance_put(es_link.hint, (uint32_t)index, bytes);
    else
        es_amounts_tell(ES_FREED, ES_MEMORY_PLAIN, bytes, index);
}

void es_amounts_unuse(CUdevice device, uint64_t bytes) {
    struct es_amount *amount = &es_amounts[device];
    const int index = es_device_index(device);
    uint64_t heard;

    amount->used -= bytes;
    if (!es_amounts_joined() || index < 0)
        return;
    heard = bytes < amount->known ? bytes : amount->known;
    amount->known -= heard;
    if (heard > 0)
        es_amounts_put_back(index, heard);
}

void es_amounts_use(CUdevice device, uint64_t bytes, uint32_t granted) {
    struct es_amount *amount = &es_amounts[device];
    const int index = es_device_index(device);

    amount->used += bytes;
    if (!es_amounts_joined() || index < 0)
        return;
    if (granted != es_amounts_session)
        es_amounts_tell(ES_DECLARE, ES_MEMORY_PLAIN, bytes, index);
    amount->known += bytes;
}

bool es_amounts_used(uint32_t index, unsigned long long *bytes) {
    struct es_memory_query record = {{ES_MEMORY_QUERY, sizeof(record), es_session_number()}, index, 0};
    struct es_memory_info info;

    if (!es_amounts_counts())
        return false;
    if (reached() && es_session_ask(&record, &info, ES_MEMORY_INFO) != 0) {
        *bytes = info.used_bytes;
        return true;
    }
    *bytes = 0;
    for (CUdevice device = 0; device < ES_ORDINALS; device++) {
        es_lock_take(&es_amounts_lock);
        if (es_amounts[device].used != 0 && es_device_index(device) == (int)index)
            *bytes += es_amounts[device].used;
        es_lock_give(&es_amounts_lock);
    }
    return true;
}

void es_amounts_declare(void) {
    for (CUdevice device = 0; device < ES_ORDINALS; device++) {
        struct es_amount *amount = &es_amounts[device];
        bool any;
        int index;

        es_lock_take(&es_amounts_lock);
        any = es_amounts_joined() && (amount->used > amount->known || amount->contexts > amount->contexts_known);
        es_lock_give(&es_amounts_lock);
        index = any ? es_device_index(device) : -1;
        if (index < 0)
            continue;
        es_lock_take(&es_amounts_lock);
        if (es_amounts_joined()) {
            if (amount->used > amount->known)
                es_amounts_tell(ES_DECLARE, ES_MEMORY_PLAIN, amount->used - amount->known, index);
            amount->known = amount->used;
            for (; amount->contexts_known < amount->contexts; amount->contexts_known++)
                es_amounts_tell(ES_DECLARE, ES_MEMORY_CONTEXT, 0, index);
        }
        es_lock_give(&es_amounts_lock);
    }
}

ES_UNCHECKED void es_amounts_reset(void) {
    es_amounts_lock = (struct es_lock){0};
    memset(es_amounts, 0, sizeof(es_amounts));
    es_devices_forget();
}
