#include "core/tools/uses.h"

#include "core/tools/clock.h"
#include "core/tools/lock.h"

void es_uses_begin(struct es_uses *uses) {
    for (;;) {
        uint32_t enders;

        (void)__atomic_add_fetch(&uses->users, 1, __ATOMIC_SEQ_CST);
        enders = __atomic_load_n(&uses->enders, __ATOMIC_SEQ_CST);
        if (enders == 0)
            return;
        es_uses_end(uses);
        es_sleep_on(&uses->enders, enders, ES_MS);
    }
}

void es_uses_end(struct es_uses *uses) {
    if (__atomic_sub_fetch(&uses->users, 1, __ATOMIC_SEQ_CST) == 0 && __atomic_load_n(&uses->enders, __ATOMIC_SEQ_CST) != 0)
        es_wake_all(&uses->users);
}

void es_uses_stop(struct es_uses *uses, uint64_t patience_ns) {
    const uint64_t give_up_ns = es_now_ns() + patience_ns;
    uint32_t users;

    (void)__atomic_add_fetch(&uses->enders, 1, __ATOMIC_SEQ_CST);
    while ((users = __atomic_load_n(&uses->users, __ATOMIC_SEQ_CST)) != 0 && es_now_ns() < give_up_ns)
        es_sleep_on(&uses->users, users, ES_MS);
}

void es_uses_go_on(struct es_uses *uses) {
    if (__atomic_sub_fetch(&uses->enders, 1, __ATOMIC_SEQ_CST) == 0)
        es_wake_all(&uses->enders);
}
