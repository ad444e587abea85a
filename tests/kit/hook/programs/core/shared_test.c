/* What several threads or processes use at once, without a lock or by one. */
#include "core.h"

#include <pthread.h>

#include "core/shared/allowance.h"
#include "core/shared/used.h"
#include "core/tools/absence.h"
#include "core/tools/blocks.h"
#include "core/tools/lock.h"
#include "core/tools/uses.h"

/* By two threads: idle spells end and begin; what is read of them is never more than has passed. */
enum { SPELLS = 200000 };

static struct es_hint_page using;
static bool spells_over;

static void *end_and_begin_spells(void *unused) {
    (void)unused;
    for (uint64_t i = 1; i <= SPELLS; i++) {
        /* Of each ten it is busy for one, and uses all of that. */
        es_used_submit(&using.used, 10 * i);
        es_used_count(&using.used, 1);
        es_used_drain(&using.used, 10 * i + 1);
    }
    __atomic_store_n(&spells_over, true, __ATOMIC_RELEASE);
    return NULL;
}

static void a_spell_is_never_counted_twice(void) {
    struct es_used seen;
    uint64_t gpu_ns = 0, idle_ns = 0;
    pthread_t client;

    es_used_drain(&using.used, 1);
    pthread_create(&client, NULL, end_and_begin_spells, NULL);
    do {
        es_hint_used(&using, &seen);
        CHECK(seen.gpu_ns >= gpu_ns && seen.drained_gpu_ns <= seen.gpu_ns && seen.idle_ns >= idle_ns);
        /* A spell that lasts is one after those that are over. */
        CHECK(seen.idle_since_ns == 0 || seen.idle_ns <= seen.idle_since_ns / 10 * 9);
        gpu_ns = seen.gpu_ns;
        idle_ns = seen.idle_ns;
    } while (!__atomic_load_n(&spells_over, __ATOMIC_ACQUIRE));
    pthread_join(client, NULL);
    es_hint_used(&using, &seen);
    CHECK(seen.gpu_ns == SPELLS && seen.drained_gpu_ns == SPELLS && seen.idle_ns == 9 * SPELLS);
    CHECK(seen.idle_since_ns == 10 * SPELLS + 1 && seen.queued == 0 && seen.waits == 0);
}

static void blocks_are_found_again(void) {
    static unsigned char there[4096];
    struct es_blocks blocks = {0};
    uint32_t state = 7;
    size_t count = 0, place = 0;

    CHECK(es_blocks_remove(&blocks, 5).address == 0);
    CHECK(!es_blocks_add(&blocks, (struct es_block){0}));
    for (int i = 0; i < 100000; i++) {
        const uint32_t which = (state = state * 1664525 + 1013904223) >> 20;
        const uint64_t address = ((uint64_t)which + 1) << 9;

        if (there[which]) {
            const struct es_block block = es_blocks_remove(&blocks, address);

            CHECK(block.address == address && block.bytes == which);
            count--;
        } else {
            CHECK(es_blocks_remove(&blocks, address).address == 0);
            CHECK(es_blocks_add(&blocks, (struct es_block){address, which, 0, 1, which % 2 ? &blocks : NULL}));
            count++;
        }
        there[which] = !there[which];
        CHECK(blocks.count == count);
    }
    for (size_t which = 1; which < sizeof(there); which += 2)
        count -= there[which];
    while (es_blocks_remove_owned(&blocks, &blocks, &place).address != 0)
        ;
    CHECK(blocks.count == count);
    es_blocks_clear(&blocks);
    CHECK(blocks.count == 0);
}

static struct es_lock lock;
static long counter;

static void *count_up(void *unused) {
    (void)unused;
    for (int i = 0; i < 100000; i++) {
        es_lock_take(&lock);
        counter++;
        es_lock_give(&lock);
    }
    return NULL;
}

static void a_lock_excludes(void) {
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, count_up, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK(counter == 400000);
}

/* Turns go on beyond the least until the manager has had some as well, which may not run at first. */
enum { ALLOWED = 1000, TURNS = 200000, MOST_TURNS = 1000 * TURNS };

static struct es_hint_page hints;
static uint64_t taken_back;
static int clients_at_it = 2;

/* A thread of a client takes and puts back; what it has taken is never more than there ever was. */
static void *take_and_put(void *unused) {
    (void)unused;
    for (int i = 0; i < TURNS || (i < MOST_TURNS && __atomic_load_n(&taken_back, __ATOMIC_RELAXED) == 0); i++) {
        const uint64_t bytes = (uint64_t)(i % 7);

        if (es_allowance_take(&hints, 1, bytes))
            es_allowance_put(&hints, 1, bytes);
    }
    __atomic_fetch_sub(&clients_at_it, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* The manager takes all that is there, and allows it again. */
static void *take_back_and_allow(void *unused) {
    (void)unused;
    while (__atomic_load_n(&clients_at_it, __ATOMIC_ACQUIRE) != 0) {
        const uint64_t got = es_allowance_take_back(&hints, 1, ALLOWED);

        CHECK(got <= ALLOWED);
        if (got != 0)
            __atomic_store_n(&taken_back, taken_back + 1, __ATOMIC_RELAXED);
        es_allowance_put(&hints, 1, got);
    }
    return NULL;
}

static void an_allowance_is_neither_lost_nor_doubled(void) {
    pthread_t threads[3];

    CHECK(!es_allowance_take(&hints, 1, 1));
    CHECK(es_allowance_take_back(&hints, 1, ALLOWED) == 0);
    es_allowance_put(&hints, 1, 2 * ALLOWED);
    CHECK(es_allowance_take_back(&hints, 1, ALLOWED) == ALLOWED);
    CHECK(es_allowance_standing(&hints, 1) == ALLOWED);
    CHECK(!es_allowance_take(&hints, 1, ALLOWED + 1));
    pthread_create(&threads[0], NULL, take_and_put, NULL);
    pthread_create(&threads[1], NULL, take_and_put, NULL);
    pthread_create(&threads[2], NULL, take_back_and_allow, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    CHECK(taken_back != 0);
    CHECK(es_allowance_standing(&hints, 1) == ALLOWED);
    CHECK(es_allowance_standing(&hints, 0) == 0 && es_allowance_standing(&hints, 2) == 0);
}

enum { USES = 100000, USERS = 3 };

static struct es_uses uses;
static bool handle_ended; /* atomic */
static int users_at_it = USERS;

/* What lives as a use begins lives as long as that. */
static void *use_it(void *unused) {
    (void)unused;
    for (int i = 0; i < USES; i++) {
        es_uses_begin(&uses);
        for (int look = 0; look < 4; look++)
            CHECK(!__atomic_load_n(&handle_ended, __ATOMIC_RELAXED));
        es_uses_end(&uses);
    }
    __atomic_fetch_sub(&users_at_it, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void nothing_ends_while_it_is_used(void) {
    pthread_t threads[USERS];

    for (int i = 0; i < USERS; i++)
        pthread_create(&threads[i], NULL, use_it, NULL);
    while (__atomic_load_n(&users_at_it, __ATOMIC_ACQUIRE) != 0) {
        es_uses_stop(&uses, UINT64_MAX / 2);
        __atomic_store_n(&handle_ended, true, __ATOMIC_RELAXED);
        __atomic_store_n(&handle_ended, false, __ATOMIC_RELAXED);
        es_uses_go_on(&uses);
    }
    for (int i = 0; i < USERS; i++)
        pthread_join(threads[i], NULL);
    /* Who does not end its use is not waited for any longer. */
    es_uses_begin(&uses);
    es_uses_stop(&uses, 1);
    es_uses_end(&uses);
    es_uses_go_on(&uses);
    CHECK(uses.users == 0 && uses.enders == 0);
}

static void an_absence_begins_anew_when_the_manager_says_that_one_waits(void) {
    const uint64_t ms = 1000000, begin_ns = 5000 * ms, grace_ns = 3000 * ms, heard_ns = begin_ns + 2500 * ms;
    struct es_absence absence = {0};

    es_absence_begin(&absence, begin_ns, grace_ns);
    CHECK(!es_absence_over(&absence, begin_ns + grace_ns - 1, grace_ns) &&
          es_absence_over(&absence, begin_ns + grace_ns, grace_ns));
    es_absence_put_off(&absence, heard_ns);
    CHECK(!es_absence_over(&absence, heard_ns + grace_ns - 1, grace_ns) &&
          es_absence_over(&absence, heard_ns + grace_ns, grace_ns));
    /* One that waits for no manager waits for one that it has heard, until it is heard no more. */
    CHECK(!es_absence_over(&absence, heard_ns + ES_HEARD_MS_LEAST * ms - 1, 0));
    CHECK(es_absence_over(&absence, heard_ns + ES_HEARD_MS_LEAST * ms, 0));
}

static void one_that_is_refused_asks_less_and_less_often_and_its_absence_begins_when_it_asks_again(void) {
    const uint64_t grace_ns = ES_TRY_NS;
    uint64_t now_ns = 5000 * (uint64_t)ES_TRY_NS, pause_ns = 0;
    struct es_absence absence = {0};

    es_absence_begin(&absence, now_ns, grace_ns);
    for (int i = 0; i < 2 * ES_REFUSED_DOUBLINGS; i++) {
        const uint64_t longer_ns = es_absence_refused(&absence, now_ns);

        CHECK(i == 0 ? longer_ns == ES_TRY_NS : longer_ns == (i <= ES_REFUSED_DOUBLINGS ? 2 * pause_ns : pause_ns));
        pause_ns = longer_ns;
        CHECK(absence.next_try_ns == now_ns + pause_ns);
        now_ns += pause_ns;
        CHECK(!es_absence_over(&absence, now_ns - 1, grace_ns) && !es_absence_over(&absence, now_ns, grace_ns));
    }
    CHECK(es_absence_over(&absence, now_ns + ES_HEARD_MS_LEAST * (uint64_t)1000000, grace_ns));
    es_absence_joined(&absence, now_ns);
    CHECK(es_absence_refused(&absence, now_ns) == ES_TRY_NS);
}

void test_shared(void) {
    blocks_are_found_again();
    a_lock_excludes();
    an_allowance_is_neither_lost_nor_doubled();
    a_spell_is_never_counted_twice();
    an_absence_begins_anew_when_the_manager_says_that_one_waits();
    one_that_is_refused_asks_less_and_less_often_and_its_absence_begins_when_it_asks_again();
    nothing_ends_while_it_is_used();
}
