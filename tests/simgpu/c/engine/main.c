#include "bench.h"

#define PROPERTY(name) TEST(name),

static const struct property TESTS[] = {
#include "properties.def"
};

int main(int argc, char **argv) { return run_property(TESTS, sizeof TESTS / sizeof *TESTS, argc, argv); }
