#include "property.h"

uint64_t times = 1;

const struct property *property_named(const struct property *properties, size_t count, const char *name) {
    for (size_t index = 0; index < count; index++) {
        if (strcmp(name, properties[index].name) == 0)
            return &properties[index];
    }
    return NULL;
}

int run_property(const struct property *properties, size_t count, int argc, char **argv) {
    const struct property *property = argc > 1 ? property_named(properties, count, argv[1]) : NULL;
    if (!property)
        return 2;
    if (argc > 2)
        times = strtoull(argv[2], NULL, 10);
    property->run();
    return 0;
}
