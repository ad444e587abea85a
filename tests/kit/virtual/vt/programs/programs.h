/* Programs that the virtual machine is tested with. Each begins as a thread of process 0, the judge. */
#ifndef PROGRAMS_H
#define PROGRAMS_H

#include <stdint.h>

#include "vt.h"

#define MS 1000000ull
#define US 1000ull

uint64_t option(const char *name, uint64_t otherwise); /* NAME=NUMBER of the command line */
void say(const char *what, int64_t value);             /* a line for the test */
void must(int true, const char *what);                 /* ends the program where it is not */

void mixed(void);   /* a bit of everything, for its hash */
void order(void);   /* effects never come before their causes */
void race(void);    /* of a wake and a deadline */
void threads(void); /* what pthread.h and semaphore.h have */
void shared_futex(void);
void lost_wake(void);
void timers(void);
void looks(void); /* at the clock, from one place and from two */
void loops(void); /* of looks until a time: those of a program's own, or passed at once */
void sockets(void);
void crowd(void); /* more connect than a listener has room for */
void peers(void); /* pids, pidfds, /proc */
void record_locks(void);
void environment(void);     /* and libraries */
void victim_dies(void);     /* at its point `number` */
void judge_dies(void);      /* the same, of the process that entered */
void judge_is_killed(void); /* by another, while it waits */
void stops(void);
void stops_itself(void);
void spins(void);
void deadlock(void);
void too_many(void);
void lost_update(void); /* racy.c, which is instrumented */

#endif
