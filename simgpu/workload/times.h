/* When burn does what: times of CLOCK_MONOTONIC, in ns. */
#ifndef SIMGPU_TIMES_H
#define SIMGPU_TIMES_H

#include <stdint.h>

uint64_t now_ns(void);
void sleep_until(uint64_t time_ns);

/* Passes so much time as a program does that works on the host. */
void think(uint64_t think_ns);

/* Says that all is ready, and returns at the time that standard input says. 0; or -1 with one line on stderr. */
int wait_to_be_told(void);

#endif
