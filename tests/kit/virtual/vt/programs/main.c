#include "programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char **options;

uint64_t option(const char *name, uint64_t otherwise) {
    const size_t length = strlen(name);

    for (char **word = options; *word != NULL; word++)
        if (strncmp(*word, name, length) == 0 && (*word)[length] == '=')
            return strtoull(*word + length + 1, NULL, 0);
    return otherwise;
}

void say(const char *what, int64_t value) { printf("%s %lld\n", what, (long long)value); }

void must(int true, const char *what) {
    if (true)
        return;
    fprintf(stderr, "not so: %s\n", what);
    vt_dump();
    _exit(1);
}

static const struct {
    const char *name;
    void (*run)(void);
} programs[] = {
    {"mixed", mixed},
    {"order", order},
    {"race", race},
    {"threads", threads},
    {"shared_futex", shared_futex},
    {"lost_wake", lost_wake},
    {"timers", timers},
    {"looks", looks},
    {"loops", loops},
    {"sockets", sockets},
    {"crowd", crowd},
    {"peers", peers},
    {"record_locks", record_locks},
    {"environment", environment},
    {"victim_dies", victim_dies},
    {"judge_dies", judge_dies},
    {"judge_is_killed", judge_is_killed},
    {"stops", stops},
    {"stops_itself", stops_itself},
    {"spins", spins},
    {"deadlock", deadlock},
    {"too_many", too_many},
    {"lost_update", lost_update},
};

static void begin(void) {
    const struct vt_config config = {
        .seed = option("seed", 1),
        .noise = (uint32_t)option("noise", VT_SPREAD),
        .atomics = (uint32_t)option("atomics", 0),
        .trace = (uint32_t)option("trace", 0),
        .budget_s = (uint32_t)option("budget_s", 60),
        .delays_most = option("delays_most", UINT64_MAX),
        .costs = {.clock_ns = 40,
                  .futex_ns = 800,
                  .io_ns = 2000,
                  .mutex_ns = 40,
                  .barrier_ns = 10000,
                  .create_ns = 10000,
                  .step_ns = 2000,
                  .wake_ns = 5000,
                  .wake_spread_ns = (uint32_t)option("wake_spread_ns", 0)},
    };

    vt_init(&config);
    vt_enter(vt_process("judge", NULL, 1), "main");
}

int main(int count, char **words) {
    options = words + (count > 2 ? 2 : count);
    for (unsigned i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        if (count < 2 || strcmp(words[1], programs[i].name) != 0)
            continue;
        begin();
        programs[i].run();
        printf("hash %016llx\n", (unsigned long long)vt_hash());
        say("points", (int64_t)vt_points());
        say("delays", (int64_t)vt_delays());
        (void)fflush(stdout);
        _exit(0);
    }
    fprintf(stderr, "usage: main PROGRAM [NAME=NUMBER ...]\n");
    return 2;
}
