#include "usage/measured.h"

struct es_measured es_measured;

ES_UNCHECKED void es_measured_reset(void) { es_measured = (struct es_measured){.gpu_ns = 0}; }
