#include <stdio.h>
#include <string.h>

#include "client.h"

/* argv[1] says through which door it finds the driver's functions. */
int main(int argc, char **argv) {
    char line[4096];

    setvbuf(stdout, NULL, _IOLBF, 0);
    setvbuf(stdin, NULL, _IONBF, 0);
    if (argc < 2 || find_functions(argv[1]) != 0)
        return 3;
    printf("ready\n");
    while (fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (!run(line))
            break;
    }
    return 0;
}
