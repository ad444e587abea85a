#ifndef EDGESHARE_CORE_USES_H
#define EDGESHARE_CORE_USES_H

#include <stdint.h>

/* Handles of one kind, which some threads use and others end: while somebody ends one nobody uses any, and who ends one
 * waits for those who do. For uses as short as a call of the driver. Zero: nobody does either. All of these keep errno. */
struct es_uses {
    uint32_t users, enders; /* atomic; futexes */
};

/* What is found to be there within a use is there until it ends. Not within another use: that would wait for itself. */
void es_uses_begin(struct es_uses *uses);
void es_uses_end(struct es_uses *uses);

/* Returns when nobody uses any, or after so long; nobody begins to before es_uses_go_on. */
void es_uses_stop(struct es_uses *uses, uint64_t patience_ns);
void es_uses_go_on(struct es_uses *uses);

#endif
