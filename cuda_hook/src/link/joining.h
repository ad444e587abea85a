#ifndef EDGESHARE_JOINING_H
#define EDGESHARE_JOINING_H

#include <stdint.h>

/* How a session with the node's manager comes about: at first, after it was away, and in a forked child. */

/* Joins when this process has not tried yet: finds the allocation, says HELLO, maps the pages. Called where a submission asks;
 * short and bounded. In a forked child it does nothing. */
void es_join(void);

/* Where CUDA begins (cuInit, a question for memory, a context). In a forked child it forgets the parent's session and
 * joins. Elsewhere it is es_join. */
void es_join_anew(void);

/* No manager: tries to join again when it is time, and after the grace time lets launches pass or not, as the policy
 * says. Returns how long to sleep before the next try. */
uint64_t es_join_again(void);

#endif
