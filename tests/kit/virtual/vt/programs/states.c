/* How processes stop and get stuck, and what surrounds them. */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "programs.h"

static uint64_t counted;

static void count(void *argument) {
    (void)argument;
    for (;;) {
        vt_sleep(MS);
        counted++;
    }
}

void stops(void) {
    const int process = vt_process("counter", NULL, 1);
    uint64_t before;

    (void)vt_spawn(process, "counts", count, NULL);
    vt_sleep(10 * MS);
    say("running", (int64_t)counted);
    vt_stop(process);
    before = counted;
    vt_sleep(50 * MS);
    say("while_stopped", (int64_t)(counted - before));
    vt_continue(process);
    before = counted;
    vt_sleep(10 * MS);
    say("continued", (int64_t)(counted - before));
}

void stops_itself(void) {
    const int process = vt_process("counter", NULL, 1);

    vt_at(process, 10, VT_STOP, 50 * MS);
    (void)vt_spawn(process, "counts", count, NULL);
    vt_sleep(40 * MS);
    say("before", (int64_t)counted);
    vt_sleep(30 * MS);
    say("after", (int64_t)counted);
}

void looks(void) {
    struct timespec begin, now;

    (void)clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < 100; i++)
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
    say("from_one_ns", now.tv_nsec - begin.tv_nsec);
    begin = now;
    for (int i = 0; i < 50; i++) {
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
    }
    say("from_two_ns", now.tv_nsec - begin.tv_nsec);
}

static void loop_until(uint64_t time_ns) {
    struct timespec now;

    do
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
    while ((uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec < time_ns);
}

static void loop(void *pass) {
    void (*const wait)(uint64_t) = pass != NULL ? clock_pass_until : loop_until;

    for (;;) {
        vt_spend(1 + vt_random(2 * US));
        wait(vt_now() + vt_random(40 * US));
        counted++;
        if (vt_random(8) == 0)
            vt_sleep(vt_random(100 * US));
    }
}

void loops(void) {
    static char anything;
    const int whole = vt_process("whole", NULL, 1), stopped = vt_process("stopped", NULL, 3),
              killed = vt_process("killed", NULL, 1);

    vt_at(stopped, 5000, VT_STOP, MS);
    vt_at(killed, 5003, VT_KILL, 0);
    for (int process = whole; process <= killed; process++)
        for (int i = 0; i < 2; i++)
            (void)vt_spawn(process, "loops", loop, option("at_once", 0) != 0 ? &anything : NULL);
    vt_sleep(20 * MS);
    say("switches", (int64_t)vt_switches());
    say("loops", (int64_t)counted);
    for (int process = whole; process <= killed; process++)
        say("points_of", (int64_t)vt_points_of(process));
}

static void spins_without_a_point(void *argument) {
    volatile uint64_t *turns = argument;

    for (;;)
        ++*turns;
}

void spins(void) {
    static uint64_t turns;

    vt_spend(1);
    (void)vt_spawn(0, "spinner", spins_without_a_point, &turns);
    vt_sleep(MS);
}

static pthread_mutex_t mutexes[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};

static void embrace(void *argument) {
    const intptr_t first = (intptr_t)argument;

    (void)pthread_mutex_lock(&mutexes[first]);
    vt_sleep(MS);
    (void)pthread_mutex_lock(&mutexes[1 - first]);
}

void deadlock(void) {
    static struct vt_sem never;

    (void)vt_spawn(0, "one", embrace, (void *)0);
    (void)vt_spawn(0, "other", embrace, (void *)1);
    vt_sem_wait(&never);
}

void too_many(void) {
    for (;;)
        (void)vt_process("one more", NULL, 1);
}

static int found;

static int visit(struct dl_phdr_info *info, size_t size, void *name) {
    (void)size;
    found += strstr(info->dlpi_name, name) != NULL;
    return 0;
}

static void load(void *folder) {
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/lib.so", (char *)folder);
    must(dlopen(path, RTLD_NOW | RTLD_LOCAL) != NULL, "a library");
}

static void look_for_libraries(void *argument) {
    found = 0;
    (void)dl_iterate_phdr(visit, "lib.so");
    say(argument, found);
    say("variable", getenv("OF_ONE") != NULL ? atoi(getenv("OF_ONE")) : 0);
    say("path", getenv("PATH") != NULL);
}

void environment(void) {
    const int one = vt_process("one", getenv("ONE"), 1), other = vt_process("other", getenv("OTHER"), 1);

    vt_env(one, "OF_ONE", "7");
    (void)vt_spawn(one, "loads", load, getenv("ONE"));
    (void)vt_spawn(other, "loads", load, getenv("OTHER"));
    vt_sleep(MS);
    (void)vt_spawn(one, "looks", look_for_libraries, "of_one");
    vt_sleep(MS);
    look_for_libraries("of_judge");
}
