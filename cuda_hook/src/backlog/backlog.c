#include "backlog/backlog.h"

struct es_backlog es_backlog;

ES_UNCHECKED void es_backlog_reset(void) { es_backlog = (struct es_backlog){.over_ns = 0}; }
