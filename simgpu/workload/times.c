#include "workload/times.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

/* A shorter think time is spent awake, as a program's own work is: a sleep may last 50 us longer than it was told to. */
#define AWAKE_THINK_NS 200000u

uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void sleep_until(uint64_t time_ns) {
    struct timespec until = {.tv_sec = (time_t)(time_ns / 1000000000u), .tv_nsec = (long)(time_ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {}
}

void think(uint64_t think_ns) {
    uint64_t until_ns = now_ns() + think_ns;
    if (think_ns > AWAKE_THINK_NS)
        sleep_until(until_ns);
    while (now_ns() < until_ns) {}
}

int wait_to_be_told(void) {
    uint64_t start_ns;
    printf("ready\n");
    fflush(stdout);
    if (scanf("%" SCNu64, &start_ns) != 1) {
        fprintf(stderr, "burn: standard input ended without a time to begin at: write the ns of CLOCK_MONOTONIC to it\n");
        return -1;
    }
    sleep_until(start_ns);
    return 0;
}
