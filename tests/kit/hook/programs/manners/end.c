#include <stdlib.h>

#include "manners.h"

static void at_the_end(void) {
    work();
    puts("ended well");
}

static void __attribute__((destructor)) after_the_end(void) {
    if (context != NULL)
        (void)launch(10);
}

void work_at_exit(void) {
    start();
    MUST(atexit(at_the_end) == 0);
    GOOD(launch(100));
}
