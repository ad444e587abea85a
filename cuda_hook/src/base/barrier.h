#ifndef EDGESHARE_BARRIER_H
#define EDGESHARE_BARRIER_H

/* Makes all cores pass a memory barrier (where the kernel cannot, before Linux 4.14, it waits long enough): what a thread
 * wrote before is then seen. */
void es_barrier_everywhere(void);

#endif
