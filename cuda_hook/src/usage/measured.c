#include "usage/measured.h"

struct es_measured es_measured;

void es_measured_burst(uint64_t ns) {
    es_measured.burst_ns = (uint64_t)((int64_t)es_measured.burst_ns + ((int64_t)ns - (int64_t)es_measured.burst_ns) / 8);
}

ES_UNCHECKED void es_measured_reset(void) { es_measured = (struct es_measured){.gpu_ns = 0}; }
