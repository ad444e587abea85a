#ifndef EDGESHARE_LOOKUPS_H
#define EDGESHARE_LOOKUPS_H

/* Names looked up through all shared objects of the process, as the loader would. dlsym cannot be asked: it is one of the
 * functions that the hook stands in front of, and before glibc 2.34 it lives in a library that may not be there. */

/* What the program reaches by this name, the hook's own left out: the first object that exports it. NULL when there is
 * none. */
void *es_global_symbol(const char *name);

/* What stands behind the hook by this name: the first object after it; if none does, one before it. */
void *es_next_symbol(const char *name);

#endif
