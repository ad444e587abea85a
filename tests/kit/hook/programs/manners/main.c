#include <string.h>

#include "manners.h"

#define THING(name) {#name, name},
static const struct {
    const char *name;
    void (*run)(void);
} THINGS[] = {
#include "things.def"
};

/* argv[1] names one of the things; says "ok", or what went wrong. */
int main(int argc, char **argv) {
    for (size_t i = 0; argc == 2 && i < sizeof THINGS / sizeof *THINGS; i++) {
        if (strcmp(argv[1], THINGS[i].name) == 0) {
            THINGS[i].run();
            puts("ok");
            return 0;
        }
    }
    fprintf(stderr, "manners: no such thing\n");
    return 2;
}
