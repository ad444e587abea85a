#include "base/state.h"

struct es_lock es_state_lock;
uint32_t es_progress;

ES_UNCHECKED void es_state_reset(void) {
    es_state_lock = (struct es_lock){0};
    es_progress = 0;
}
