#define EDGESHARE_SLICE_INSIDE
#include "edgeshare_slice.h"

#include <errno.h>

#include "core/tools/lock.h"
#include "tpu/tpu.h"
#include "tpu/tpu_holds.h"

/* What an application asks for itself. Its slices may be nested, and of several threads: they are one. */

static struct es_lock lock;
static uint32_t depth; /* under the lock */

__attribute__((visibility("default"))) int edgeshare_slice_begin(void) {
    int fresh;
    bool others;

    if (!es_tpu_look() || !es_tpu_ours())
        return 0;
    others = es_tpu_enter();
    es_lock_take(&lock);
    fresh = es_tpu_unpark();
    if (fresh >= 0)
        depth++;
    es_lock_give(&lock);
    if (fresh < 0) {
        es_tpu_leave();
        return -1;
    }
    return others || fresh > 0 ? 1 : 0;
}

__attribute__((visibility("default"))) int edgeshare_slice_end(void) {
    bool given = false;

    if (!es_tpu_look() || !es_tpu_ours())
        return 0;
    es_lock_take(&lock);
    if (depth == 0) {
        es_lock_give(&lock);
        return 0;
    }
    depth--;
    if (depth == 0)
        given = es_tpu_park();
    es_lock_give(&lock);
    es_tpu_leave();
    return given ? 0 : 1;
}

ES_UNCHECKED void es_tpu_slices_reset(void) {
    lock = (struct es_lock){0};
    depth = 0;
}
