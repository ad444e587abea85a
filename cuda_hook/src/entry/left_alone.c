#include "entry/left_alone.h"

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* Data found by offsets, as in symbols.c. */
static const struct names {
#define ES_BECAUSE(does, why)
#define ES_LEFT(name) char name[sizeof(#name)];
#include "entry/left_alone.def"
#undef ES_LEFT
} names = {
#define ES_LEFT(name) #name,
#include "entry/left_alone.def"
#undef ES_LEFT
};

static const uint16_t name_at[] = {
#define ES_LEFT(name) offsetof(struct names, name),
#include "entry/left_alone.def"
#undef ES_LEFT
};

_Static_assert(sizeof(names) <= UINT16_MAX, "name_at has 16 bits");

bool es_left_alone(const char *name) {
    for (size_t i = 0; i < sizeof(name_at) / sizeof(name_at[0]); i++) {
        if (es_text_same((const char *)&names + name_at[i], name))
            return true;
    }
    return false;
}
