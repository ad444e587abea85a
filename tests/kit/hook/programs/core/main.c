#include "core.h"

int failures;

/* Exits 1 where something failed. */
int main(void) {
    test_records();
    test_costs();
    test_costs_asked();
    test_passes();
    test_overlap();
    test_timeline();
    test_spent();
    test_spent_together();
    test_shared();
    return failures != 0;
}
