/* Looks up every name that it is told, through every door of a driver library, and says what it got. One line on stdin is
 * one name; argv: the library, then the CUDA versions to ask for. Answers:
 *
 *   DOOR NAME VERSION FLAGS RESULT STATUS OBJECT SYMBOL
 *
 * OBJECT is where the answer lies ("driver", "hook", "other", "-" for none), SYMBOL what is exported there. No GPU is
 * needed. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver_api.h"

enum { UNTOUCHED = 77 }; /* what symbolStatus holds before the call: not one of its values */

static const char *driver_file;

static void say(const char *door, const char *name, int version, int flags, int result, int status, const void *found) {
    const char *object = "-", *symbol = "-";
    Dl_info info = {0};

    if (found != NULL) {
        object = "other";
        if (dladdr(found, &info) != 0 && strcmp(info.dli_fname, driver_file) == 0)
            object = "driver";
        else if (info.dli_fname != NULL && strstr(info.dli_fname, "libedgeshare_cuda") != NULL)
            object = "hook";
        symbol = info.dli_sname != NULL && info.dli_saddr == found ? info.dli_sname : "?";
    }
    printf("%s %s %d %d %d %d %s %s\n", door, name[0] != '\0' ? name : "-", version, flags, result, status, object, symbol);
}

static void by_symbol(void *driver, const char *name) {
    say("handle", name, 0, 0, 0, 0, dlsym(driver, name));
    say("version", name, 0, 0, 0, 0, dlvsym(driver, name, "libcuda.so.1"));
    say("default", name, 0, 0, 0, 0, dlsym(RTLD_DEFAULT, name));
    say("next", name, 0, 0, 0, 0, dlsym(RTLD_NEXT, name));
}

static void by_version(__typeof__(&cuGetProcAddress) first, __typeof__(&cuGetProcAddress_v2) second, const char *name,
                       int version) {
    for (int flags = 0; flags <= 3; flags++) {
        CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)UNTOUCHED;
        void *found = NULL;
        int result = first(name, &found, version, (cuuint64_t)flags);

        say("getproc", name, version, flags, result, UNTOUCHED, found);
        if (second == NULL)
            continue;
        found = NULL;
        result = second(name, &found, version, (cuuint64_t)flags, &status);
        say("getproc2", name, version, flags, result, (int)status, found);
    }
}

int main(int argc, char **argv) {
    __typeof__(&cuGetProcAddress) first;
    __typeof__(&cuGetProcAddress_v2) second;
    char name[128];
    void *driver;

    if (argc < 3)
        return 2;
    driver_file = argv[1];
    driver = dlopen(driver_file, RTLD_NOW | RTLD_GLOBAL);
    if (driver == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 3;
    }
    *(void **)&first = dlsym(driver, "cuGetProcAddress");
    *(void **)&second = dlsym(driver, "cuGetProcAddress_v2");
    if (first == NULL)
        return 4;
    while (fgets(name, sizeof(name), stdin) != NULL) {
        name[strcspn(name, "\n")] = '\0';
        by_symbol(driver, name);
        for (int i = 2; i < argc; i++)
            by_version(first, second, name, atoi(argv[i]));
    }
    return 0;
}
