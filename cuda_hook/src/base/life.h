#ifndef EDGESHARE_LIFE_H
#define EDGESHARE_LIFE_H

#include <stdbool.h>

/* The life of the process: where the hook begins in it, and what a fork or a signal does to that. */

/* True for the one thread that is to begin, and then calls es_life_begun; all others wait here until it has. In a forked
 * child, false. */
bool es_life_begin(void);
void es_life_begun(void);

/* In a child that was forked after its parent had begun: true for the one thread that is to forget what was the parent's,
 * and then calls es_life_forgotten: from there on the child can begin. All others wait here until it has. */
bool es_life_forget(void);
void es_life_forgotten(void);

/* Is a call none of the hook's business? In a forked child that has not begun itself its locks may be taken for ever, by
 * threads of the parent; in a signal handler that interrupted the hook, by the very thread. */
bool es_life_apart(void);

#endif
