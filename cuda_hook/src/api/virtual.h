#ifndef EDGESHARE_VIRTUAL_H
#define EDGESHARE_VIRTUAL_H

/* In a forked child. */
void es_virtual_reset(void);

#endif
