#include <stdio.h>
#include <string.h>

#include "odd.h"

#define THING(name) {#name, name},
static const struct {
    const char *name;
    void (*run)(void);
} THINGS[] = {
#include "things.def"
};

/* argv[1] names one of the things; without it, all are listed. */
int main(int argc, char **argv) {
    for (size_t index = 0; index < sizeof THINGS / sizeof *THINGS; index++) {
        if (argc < 2)
            puts(THINGS[index].name);
        else if (strcmp(argv[1], THINGS[index].name) == 0)
            THINGS[index].run();
    }
    return 0;
}
