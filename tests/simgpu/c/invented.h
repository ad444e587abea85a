#ifndef SIMGPU_TEST_INVENTED_H
#define SIMGPU_TEST_INVENTED_H

#include <stdint.h>

/* Times that tests of the engine invent, and chance that is the same in each run. */

#define MS 1000000ull
#define US 1000ull
#define START (1000 * MS)

/* xorshift64: what it says next follows from this alone, which is not 0. */
extern uint64_t random_state;
uint64_t random_below(uint64_t limit);

#endif
