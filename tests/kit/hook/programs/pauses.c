/* Pauses of the hook's own (pass/grant.h), with what they need of it: who may submit when, and who ends one. */
#include "base/barrier.h"
#include "check.h"
#include "link/link.h"
#include "link/session.h"
#include "pass/grant.h"
#include "usage/measured.h"

enum { WORD = 5 };

static struct es_gate_page page = {.word = WORD};

const uint32_t es_word_shut = 0;
const uint32_t *es_link_word = &page.word;
struct es_link es_link = {.page = &page, .mode = ES_JOINED};
struct es_lock es_state_lock;
struct es_measured es_measured;
struct es_threads es_threads;

void es_barrier_everywhere(void) {}
bool es_session_send(void *record) { return record != NULL; }

static void who_keeps_others_out_submits_until_the_gate_is_shut(const struct es_slot *one, const struct es_slot *other) {
    CHECK(es_grant_lasts(one, WORD) && es_grant_lasts(other, WORD));
    CHECK(es_grant_exclude(one));
    CHECK(es_grant_lasts(one, WORD) && !es_grant_lasts(other, WORD));
    page.word = WORD + 1;
    CHECK(!es_grant_lasts(one, WORD));
    page.word = WORD;
    es_grant_include(other);
    CHECK(!es_grant_lasts(other, WORD));
    es_grant_include(one);
    CHECK(es_grant_lasts(one, WORD) && es_grant_lasts(other, WORD));
}

static void one_pause_is_at_a_time(const struct es_slot *one, const struct es_slot *other) {
    CHECK(es_grant_pause());
    CHECK(!es_grant_exclude(one) && !es_grant_pause());
    es_grant_include(one);
    CHECK(!es_grant_lasts(one, WORD) && !es_grant_lasts(other, WORD));
    es_grant_resume();
    CHECK(es_grant_lasts(one, WORD));
}

/* Its thread has died: those who wait go on by themselves, and so does who is to look at what is queued. */
static void nobody_is_kept_out_for_good(const struct es_slot *one, const struct es_slot *other) {
    CHECK(es_grant_exclude(one));
    while (es_grant.paused != 0)
        es_grant_await();
    CHECK(es_grant_lasts(other, WORD));
    CHECK(es_grant_exclude(one));
    while (!es_grant_pause())
        ;
    es_grant_include(one);
    CHECK(!es_grant_lasts(one, WORD));
    es_grant_resume();
    CHECK(es_grant_lasts(one, WORD) && es_grant_lasts(other, WORD));
}

int main(void) {
    static const struct es_slot one, other;

    who_keeps_others_out_submits_until_the_gate_is_shut(&one, &other);
    one_pause_is_at_a_time(&one, &other);
    nobody_is_kept_out_for_good(&one, &other);
    return failures != 0;
}
