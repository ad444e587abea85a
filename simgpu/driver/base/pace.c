/* The pace: what calls cost the thread that makes them. */
#include "driver/base/pace.h"

void pace_spend(uint64_t ns) {
    if (!ns)
        return;
    clock_spin_until(clock_now_ns() + ns);
}
