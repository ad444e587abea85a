/* The pace: what calls cost the thread that makes them. */
#include "driver/driver.h"

void pace_spend(uint64_t ns) {
    if (!ns)
        return;
    uint64_t until_ns = clock_now_ns() + ns;
    while (clock_now_ns() < until_ns) {}
}
